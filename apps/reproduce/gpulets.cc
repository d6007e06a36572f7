// gpu-lets' figures, and those that need planners alone: 3, 4, 6, 8, 9, 12, 15 and 16.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reproduce/gpulets_answers.h"
#include "reproduce/gpulets_figures.h"
#include "reproduce/gpulets_runs.h"

namespace tactus {
namespace {

FigureSeries OnShares(const std::string& label, std::size_t model, int batch) {
  FigureSeries series{label, {}};
  for (const double percent : {20, 40, 50, 60, 80, 100}) {
    FigurePoint point = GpuletPoint(percent, "", "equal");
    point.answer = [=](const FigurePoint& asked, const ReproduceOptions& options) {
      return OnShare(ScenarioOf(asked, options), model, batch, percent);
    };
    series.points.push_back(std::move(point));
  }
  return series;
}

Figure Figure3() {
  Figure figure =
      GpuletFigure("3", "Latency on a share of the device (Section 3.1)",
                   {"latency_ms", "rate_rps", "is_knee"}, nullptr);  // the stand-in's own
  for (std::size_t m = 1; m < kGpuletModels.size(); ++m) {           // the paper leaves LeNet out
    for (const int batch : {1, 2, 4, 8, 16, 32}) {
      figure.series.push_back(
          OnShares(fmt::format("{}: batch {}", kGpuletModels[m], batch), m, batch));
    }
    figure.panels.push_back(
        Lines("latency_ms", "share of the device (%)", "latency (ms)", kGpuletModels[m]));
  }
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure8() {
  Figure figure =
      GpuletFigure("8", "Affordable rate on a share of the device, and its knee (Section 4.3)",
                   {"latency_ms", "rate_rps", "is_knee"}, KneeClaims);
  for (std::size_t m = 0; m < kGpuletModels.size(); ++m) {
    figure.series.push_back(OnShares(fmt::format("{}: affordable", kGpuletModels[m]), m, 1));
    figure.panels.push_back(
        Lines("rate_rps", "share of the device (%)", "requests/s", kGpuletModels[m]));
    figure.panels.back().mark = "is_knee";
    figure.panels.back().mark_label = "knee";
  }
  figure.panels_in_row = 3;
  return figure;
}

FigurePoint Count(double x, const std::string& name, const std::string& planner) {
  FigurePoint point = GpuletPoint(x, name, "equal");
  point.answer = [=](const FigurePoint& asked, const ReproduceOptions& options) {
    return CountSchedulable(ScenarioOf(asked, options), planner);
  };
  return point;
}

Figure Counts(const char* id, const char* title, const std::vector<std::string>& planners,
              std::vector<Claim> (*claims)(const FigureData&)) {
  Figure figure = GpuletFigure(id, title, {"schedulable", "beyond_ideal"}, claims);
  for (const std::string& planner : planners) {
    figure.series.push_back({planner, {Count(1, "1,023 loads", planner)}});
  }
  figure.panels = {Bars("schedulable", "loads that are planned for")};
  return figure;
}

Figure Figure4() {
  return Counts("4", "Loads that SBP plans for, 4 devices (Section 3.1)", {kSbp, kSbpHalves},
                HalvesClaims);
}

Figure Figure15() {
  std::vector<std::string> planners(kPlannerNames.begin(), kPlannerNames.end());
  planners.insert(std::ranges::find(planners, kGpuletInt), kPublished);
  return Counts("15", "Loads that are planned for, 4 devices (Section 6.2)", planners,
                SchedulableClaims);
}

Figure Figure15ByChecks() {
  Figure figure =
      GpuletFigure("15-checks", "The same by what is asked for before a load is planned (ours)",
                   {"schedulable", "gain_percent", "run", "missed", "worst_percent", "bare_missed",
                    "bare_worst_percent"},
                   CheckClaims);
  std::vector<std::string> planners = {kPublished, kNeighboursUnasked, kNobodyExpected};
  planners.insert(planners.end(), kPlannerNames.begin(), kPlannerNames.end());
  for (const char* planner : {kGpulet, kPublished, kSbp, kSbpHalves}) {
    planners.push_back(std::string(planner) + kWholeSlos);
  }
  for (const std::string& planner : planners) {
    FigurePoint point = GpuletPoint(1, "1,023 loads", "equal");
    point.answer = [=](const FigurePoint& asked, const ReproduceOptions& options) {
      return RunChecked(ScenarioOf(asked, options), MixesOf(asked, options), planner);
    };
    figure.series.push_back({planner, {point}});
  }
  figure.panels = {Bars("schedulable", "loads planned for"),
                   Bars("missed", "planned for with 15 % more, yet > 1 % lost")};
  figure.panels_in_row = 1;
  figure.source = [](const ReproduceOptions&) -> Expected<std::string> {
    return "planners on STAND-IN latencies; runs simulated with contention, one seed";
  };
  return figure;
}

Figure Figure15ByExponent() {
  Figure figure = GpuletFigure("15-exponent", "The same by the exponent of shares (ours)",
                               {"schedulable", "beyond_ideal"}, ExponentClaims);
  for (const char* planner : {kSbp, kSbpHalves, kSelfTuning, kGpulet, kGpuletRetry, kIdeal}) {
    FigureSeries series{planner, {}};
    for (const double exponent : kGpuletExponents) {
      FigurePoint point = Count(exponent, "", planner);
      point.settings = {ExponentSetting(exponent)};
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  figure.panels = {Lines("schedulable", "exponent of latency over share", "loads planned for")};
  figure.panels[0].x_min = 0.5;
  return figure;
}

Figure MostRatesOf(const char* id, const char* title, std::initializer_list<const char*> planners,
                   std::vector<Claim> (*claims)(const FigureData&)) {
  Figure figure = GpuletFigure(id, title, {"rate_rps", "times"}, claims);
  for (const char* planner : planners) {
    figure.series.push_back(
        OverMixes(planner, [=](const SetScenario& mix, const ReproduceOptions&) {
          return MostSchedulable(mix, planner);
        }));
  }
  figure.panels = {Bars("rate_rps", "requests/s of all models")};
  return figure;
}

Figure Figure12() {
  return MostRatesOf(
      "12", "Largest rates planned for (Section 6.2)",
      {kSbp, kSelfTuning, kGpulet, kPublished, kGpuletInt, kGpuletRetry, kGpuletRetryInt},
      MostRateClaims);
}

Figure Figure16() {
  Figure figure = MostRatesOf(
      "16", "The same over the ideal planner's (Section 6.2)",
      {kGpulet, kPublished, kGpuletInt, kGpuletRetry, kGpuletRetryInt, kIdealInt, kIdeal},
      MostRateOfIdealClaims);
  figure.panels[0].relative_to = kIdeal;
  figure.panels[0].y_label = "rate over ideal";
  return figure;
}

constexpr double kPercents[] = {1,  5,  10, 20, 30, 40, 50, 60,   70,
                                80, 85, 90, 95, 97, 98, 99, 99.5, 100};

// `errors`, ascending, at each percentage.
FigureSeries Spread(const char* label, const char* column,
                    Expected<std::vector<double>> (*of)(const SetScenario& scenario)) {
  FigureSeries series{label, {}};
  for (const double percent : kPercents) {
    FigurePoint point = GpuletPoint(percent, "", "equal");
    point.answer = [=](const FigurePoint& asked,
                       const ReproduceOptions& options) -> Expected<FigureRow> {
      const auto values = of(ScenarioOf(asked, options));
      if (!values) return std::unexpected(values.error());
      return FigureRow{{"percent", percent}, {column, 100 * QuantileOf(*values, percent / 100)}};
    };
    series.points.push_back(std::move(point));
  }
  return series;
}

FigurePanel SpreadPanel(const char* column, const char* x_label, const char* y_label,
                        double x_max) {
  FigurePanel panel = Lines("percent", x_label, y_label);
  panel.x = column;
  panel.y_max = 100;
  panel.x_max = x_max;
  return panel;
}

Expected<std::string> PairsSource(const ReproduceOptions&) {
  return "pairs on a simulated device: compute split, L2 and DRAM shared";
}

Figure Figure6() {
  Figure figure = GpuletFigure("6", "What a lane loses by the other one (Section 3.2)",
                               {"percent", "overhead_percent"}, OverheadClaims);
  figure.series = {Spread(kOverhead, "overhead_percent", SimulatedOverheads)};
  figure.panels = {SpreadPanel("overhead_percent", "overhead (%)", "of 2,500 batches (%)", 90)};
  figure.source = PairsSource;
  return figure;
}

Figure Figure9() {
  Figure figure = GpuletFigure("9", "Errors of the linear model of interference (Section 4.4)",
                               {"percent", "error_percent"}, FitClaims);
  figure.series = {Spread(kHeldOutPairs, "error_percent", SimulatedErrors),
                   Spread(kHeldOutSides, "error_percent", SimulatedErrorsOfSides),
                   Spread(kNoModel, "error_percent", SimulatedErrorsOfNone)};
  figure.panels = {SpreadPanel("error_percent", "error (%)", "of what is held out (%)", 40)};
  figure.source = PairsSource;
  return figure;
}

}  // namespace

Paper GpuletsPaper() {
  Paper paper;
  paper.key = "gpulets";
  paper.title = "gpu-lets";
  paper.basis = "STAND-IN latencies, and a stand-in for those on shares (the paper prints none)";
  paper.colours = {kGpulet, kGpuletInt,  kGpuletRetry, kGpuletRetryInt, kPublished,
                   kSbp,    kSelfTuning, kIdealInt,    kIdeal,          kSbpHalves};
  for (Figure (*make)() : {Figure3, Figure4, Figure6, Figure8, Figure9, Figure12, Figure15,
                           Figure15ByChecks, Figure15ByExponent, Figure16}) {
    paper.figures.push_back(make());
  }
  for (Figure (*make)() :
       {Figure4, Figure6, Figure8, Figure9, Figure12, Figure15, Figure15ByChecks, Figure16}) {
    paper.figures.push_back(OnProfiledUse(make()));
  }
  for (Figure& figure : GpuletRunFigures()) paper.figures.push_back(std::move(figure));
  std::ranges::stable_sort(paper.figures, {}, [](const Figure& figure) {
    return std::pair(std::stoi(figure.id), figure.id);
  });
  return paper;
}

}  // namespace tactus
