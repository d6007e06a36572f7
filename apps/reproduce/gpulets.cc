// gpu-lets' figures: 3, 4, 6, 8, 9, 12, 15 and 16 need planners alone, 5, 13 and 14 run plans.
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reproduce/figure.h"
#include "reproduce/gpulets_answers.h"
#include "reproduce/gpulets_claims.h"
#include "reproduce/gpulets_runs.h"

namespace tactus {
namespace {

constexpr double kExponents[] = {0.5, 0.75, 1, 1.25, 1.5};
constexpr double kSharedRates[] = {10, 25, 50, 75, 100, 150, 200, 250, 300};

std::string File(const ReproduceOptions& options, const std::string& scenario) {
  return (std::filesystem::path(options.scenarios) / (scenario + ".toml")).string();
}

std::vector<std::string> MixFiles(const ReproduceOptions& options) {
  std::vector<std::string> files;
  for (const char* mix : kGpuletMixes) files.push_back(File(options, mix));
  return files;
}

Figure Make(const char* id, const char* title, std::vector<std::string> columns,
            std::vector<Claim> (*claims)(const FigureData&)) {
  Figure figure;
  figure.id = id;
  figure.title = title;
  figure.columns = std::move(columns);
  figure.claims = claims;
  figure.most_seeds = 1;
  figure.source = [](const ReproduceOptions&) -> Expected<std::string> {
    return "planners alone, on STAND-IN latencies of the device and its shares";
  };
  return figure;
}

// The scenario is loaded for what the file depends on, too.
FigurePoint Point(double x, const std::string& name, const std::string& scenario) {
  FigurePoint point;
  point.x = x;
  point.name = name;
  point.scenario = scenario;
  return point;
}

FigurePanel Panel(const char* x, const char* y, const char* x_label, const char* y_label,
                  const std::string& group = "") {
  FigurePanel panel;
  panel.x = x;
  panel.y = y;
  panel.x_label = x_label;
  panel.y_label = y_label;
  panel.group = group;
  panel.title = group;
  return panel;
}

FigureSeries OnShares(const std::string& label, std::size_t model, int batch) {
  FigureSeries series{label, {}};
  for (const double percent : {20, 40, 50, 60, 80, 100}) {
    FigurePoint point = Point(percent, "", "equal");
    point.answer = [=](const ReproduceOptions& options) {
      return OnShare(File(options, "equal"), model, batch, percent, kExponent);
    };
    series.points.push_back(std::move(point));
  }
  return series;
}

Figure Figure3() {
  Figure figure = Make("3", "Latency on a share of the device (Section 3.1)",
                       {"latency_ms", "rate_rps", "is_knee"}, nullptr);  // the stand-in's own
  for (std::size_t m = 1; m < kGpuletModels.size(); ++m) {  // the paper leaves LeNet out
    for (const int batch : {1, 2, 4, 8, 16, 32}) {
      figure.series.push_back(
          OnShares(fmt::format("{}: batch {}", kGpuletModels[m], batch), m, batch));
    }
    figure.panels.push_back(
        Panel("load", "latency_ms", "share of the device (%)", "latency (ms)", kGpuletModels[m]));
  }
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure8() {
  Figure figure = Make("8", "Affordable rate on a share of the device, and its knee (Section 4.3)",
                       {"latency_ms", "rate_rps", "is_knee"}, KneeClaims);
  for (std::size_t m = 0; m < kGpuletModels.size(); ++m) {
    figure.series.push_back(OnShares(fmt::format("{}: affordable", kGpuletModels[m]), m, 1));
    figure.panels.push_back(
        Panel("load", "rate_rps", "share of the device (%)", "requests/s", kGpuletModels[m]));
    figure.panels.back().mark = "is_knee";
    figure.panels.back().mark_label = "knee";
  }
  figure.panels_in_row = 3;
  return figure;
}

FigurePoint Count(double x, const std::string& planner, double exponent) {
  FigurePoint point = Point(x, planner, "equal");
  point.answer = [=](const ReproduceOptions& options) {
    return CountSchedulable(File(options, "equal"), planner, exponent);
  };
  return point;
}

Figure Counts(const char* id, const char* title, const std::vector<std::string>& planners,
              std::vector<Claim> (*claims)(const FigureData&)) {
  Figure figure = Make(id, title, {"schedulable", "beyond_ideal"}, claims);
  for (std::size_t i = 0; i < planners.size(); ++i) {
    figure.series.push_back({planners[i], {Count(1, planners[i], kExponent)}});
    figure.series.back().points[0].name = "1,023 loads";
  }
  figure.panels = {Panel("load", "schedulable", "", "loads that are planned for")};
  figure.panels[0].bars = true;
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
  Figure figure = Make("15-checks", "The same by what is asked for before a load is planned (ours)",
                       {"schedulable", "gain_percent", "run", "missed", "worst_percent",
                        "bare_missed", "bare_worst_percent"},
                       CheckClaims);
  std::vector<std::string> planners = {kPublished, kNeighboursUnasked, kNobodyExpected};
  planners.insert(planners.end(), kPlannerNames.begin(), kPlannerNames.end());
  for (const char* planner : {kGpulet, kPublished, kSbp, kSbpHalves}) {
    planners.push_back(std::string(planner) + kWholeSlos);
  }
  for (const std::string& planner : planners) {
    FigurePoint point = Point(1, "1,023 loads", "equal");
    point.answer = [=](const ReproduceOptions& options) {
      return RunChecked(File(options, "equal"), MixFiles(options), planner);
    };
    figure.series.push_back({planner, {point}});
  }
  figure.panels = {Panel("load", "schedulable", "", "loads planned for"),
                   Panel("load", "missed", "", "planned for with 15 % more, yet > 1 % lost")};
  for (FigurePanel& panel : figure.panels) panel.bars = true;
  figure.panels_in_row = 1;
  figure.source = [](const ReproduceOptions&) -> Expected<std::string> {
    return "planners on STAND-IN latencies; runs simulated with contention, one seed";
  };
  return figure;
}

Figure Figure15ByExponent() {
  Figure figure = Make("15-exponent", "The same by the exponent of shares (ours)",
                       {"schedulable", "beyond_ideal"}, ExponentClaims);
  for (const char* planner : {kSbp, kSbpHalves, kSelfTuning, kGpulet, kGpuletRetry, kIdeal}) {
    FigureSeries series{planner, {}};
    for (const double exponent : kExponents) {
      FigurePoint point = Count(exponent, planner, exponent);
      point.name.clear();
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  figure.panels = {
      Panel("load", "schedulable", "exponent of latency over share", "loads planned for")};
  figure.panels[0].x_min = 0.5;
  return figure;
}

// From a mix's file.
using MixAnswer =
    std::function<Expected<FigureRow>(const std::string& mix, const ReproduceOptions& options)>;

// A bar for each of the mixes, or of the first of them.
FigureSeries OverMixes(const std::string& label, const MixAnswer& answer,
                       std::size_t count = kGpuletMixes.size()) {
  FigureSeries series{label, {}};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string mix = kGpuletMixes[i];
    FigurePoint point = Point(static_cast<double>(i + 1), mix, mix);
    point.answer = [=](const ReproduceOptions& options) {
      return answer(File(options, mix), options);
    };
    series.points.push_back(std::move(point));
  }
  return series;
}

Figure MostRatesOf(const char* id, const char* title, std::initializer_list<const char*> planners,
                   std::vector<Claim> (*claims)(const FigureData&)) {
  Figure figure = Make(id, title, {"rate_rps", "times"}, claims);
  for (const char* planner : planners) {
    figure.series.push_back(
        OverMixes(planner, [=](const std::string& mix, const ReproduceOptions&) {
          return MostSchedulable(mix, planner, kExponent);
        }));
  }
  figure.panels = {Panel("load", "rate_rps", "", "requests/s of all models")};
  figure.panels[0].bars = true;
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
                    Expected<std::vector<double>> (*of)(const std::string& scenario)) {
  FigureSeries series{label, {}};
  for (const double percent : kPercents) {
    FigurePoint point = Point(percent, "", "equal");
    point.answer = [=](const ReproduceOptions& options) -> Expected<FigureRow> {
      const auto values = of(File(options, "equal"));
      if (!values) return std::unexpected(values.error());
      return FigureRow{{"percent", percent}, {column, 100 * QuantileOf(*values, percent / 100)}};
    };
    series.points.push_back(std::move(point));
  }
  return series;
}

FigurePanel SpreadPanel(const char* column, const char* x_label, const char* y_label,
                        double x_max) {
  FigurePanel panel = Panel(column, "percent", x_label, y_label);
  panel.y_max = 100;
  panel.x_max = x_max;
  return panel;
}

Expected<std::string> PairsSource(const ReproduceOptions&) {
  return "pairs on a simulated device: compute split, L2 and DRAM shared";
}

Figure Figure6() {
  Figure figure = Make("6", "What a lane loses by the other one (Section 3.2)",
                       {"percent", "overhead_percent"}, OverheadClaims);
  figure.series = {Spread(kOverhead, "overhead_percent", SimulatedOverheads)};
  figure.panels = {SpreadPanel("overhead_percent", "overhead (%)", "of 2,500 batches (%)", 90)};
  figure.source = PairsSource;
  return figure;
}

Figure Figure9() {
  Figure figure = Make("9", "Errors of the linear model of interference (Section 4.4)",
                       {"percent", "error_percent"}, FitClaims);
  figure.series = {Spread(kHeldOutPairs, "error_percent", SimulatedErrors),
                   Spread(kHeldOutSides, "error_percent", SimulatedErrorsOfSides),
                   Spread(kNoModel, "error_percent", SimulatedErrorsOfNone)};
  figure.panels = {SpreadPanel("error_percent", "error (%)", "of what is held out (%)", 40)};
  figure.source = PairsSource;
  return figure;
}

Expected<std::string> RunSource(const ReproduceOptions& options) {
  return fmt::format("simulated with contention on STAND-IN latencies; {}",
                     options.seeds == 1 ? "one seed" : fmt::format("{} seeds", options.seeds));
}

Figure MakeRun(const char* id, const char* title, std::vector<std::string> columns,
               std::vector<Claim> (*claims)(const FigureData&), int most_seeds) {
  Figure figure = Make(id, title, std::move(columns), claims);
  figure.most_seeds = most_seeds;
  figure.source = [most_seeds](const ReproduceOptions& options) -> Expected<std::string> {
    ReproduceOptions used = options;
    if (most_seeds > 0) used.seeds = std::min(used.seeds, most_seeds);
    return RunSource(used);
  };
  return figure;
}

// What may be late or dropped, in every panel.
void DrawMostBad(Figure& figure, bool bars) {
  for (FigurePanel& panel : figure.panels) {
    panel.bars = bars;
    panel.line = 1;
    panel.line_label = "1 %";
  }
}

constexpr std::array kRunPlanners = {kGpulet, kGpuletInt, kGpuletRetry, kGpuletRetryInt};
constexpr std::array kMixPlanners = {kGpulet, kPublished, kGpuletInt, kGpuletRetry,
                                     kGpuletRetryInt};

Figure Figure5() {
  Figure figure =
      MakeRun("5", "LeNet and VGG-16 at the same rate on one device (Section 3.1)",
              {"bad_percent", "lenet_bad_percent", "vgg_bad_percent", "lenet_batch", "vgg_batch"},
              SharingClaims, 1);
  for (const auto& [label, sharing] : {std::pair{kTemporalSharing, Sharing::kTemporal},
                                       {kUnsplit, Sharing::kUnsplit},
                                       {kSplit20, Sharing::k20And80},
                                       {kSplit40, Sharing::k40And60}}) {
    FigureSeries series{label, {}};
    for (const double rate_rps : kSharedRates) {
      FigurePoint point = Point(rate_rps, "", "equal");
      point.answer = [=](const ReproduceOptions& options) {
        return RunShared(File(options, "equal"), sharing, rate_rps);
      };
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  figure.panels = {Panel("load", "lenet_bad_percent", "requests/s of each", "late or dropped (%)"),
                   Panel("load", "vgg_bad_percent", "requests/s of each", "late or dropped (%)")};
  figure.panels[0].title = "LeNet";
  figure.panels[1].title = "VGG-16";
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure13() {
  Figure figure =
      MakeRun("13", "What is late or dropped at the largest rate planned for",
              {"rate_rps", "headroom_percent", "bad_percent", "worst_percent", "alone_percent"},
              ViolationClaims, 0);
  for (const char* planner : kMixPlanners) {
    const auto answer = [=](const std::string& mix, const ReproduceOptions& options) {
      return RunMost(mix, planner, kHeadroom, options);
    };
    figure.series.push_back(OverMixes(planner, answer));
  }
  figure.panels = {Panel("load", "bad_percent", "", "late or dropped (%)"),
                   Panel("load", "alone_percent", "", "if lanes did not slow each other (%)")};
  DrawMostBad(figure, true);
  figure.panels[1].y_max = 2;
  figure.panels_in_row = 1;
  return figure;
}

// The paper's two applications are the first two mixes.
Figure Figure13Frames() {
  Figure figure =
      MakeRun("13-frames", "The applications of Figure 13 as frames (Section 6.1)",
              {"rate_fps", "bad_percent", "worst_percent", "alone_percent", "requests_percent"},
              FrameClaims, 0);
  for (const char* planner : kMixPlanners) {
    const auto answer = [=](const std::string& mix, const ReproduceOptions& options) {
      return RunMostFrames(mix, planner, kHeadroom, options);
    };
    figure.series.push_back(OverMixes(planner, answer, kGpuletApplications));
  }
  figure.panels = {Panel("load", "bad_percent", "", "frames late or dropped (%)"),
                   Panel("load", "requests_percent", "", "requests by themselves (%)")};
  DrawMostBad(figure, true);
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure13ByHeadroom() {
  Figure figure =
      MakeRun("13-headroom", "The worst of the five by what is planned for beyond it (ours)",
              {"bad_percent", "alone_percent"}, HeadroomClaims, 1);
  for (const char* planner : kRunPlanners) {
    FigureSeries series{planner, {}};
    for (const double percent : {0, 5, 10, 15, 20}) {
      FigurePoint point = Point(percent, "", "equal");
      point.answer = [=](const ReproduceOptions& options) -> Expected<FigureRow> {
        FigureRow worst = {{"bad_percent", 0}, {"alone_percent", 0}};
        for (const char* mix : kGpuletMixes) {
          const auto row = RunMost(File(options, mix), planner, percent / 100, options);
          if (!row) return row;
          for (auto& [column, value] : worst) value = std::max(value, row->at(column));
        }
        return worst;
      };
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  figure.panels = {
      Panel("load", "bad_percent", "headroom (%)", "late or dropped, worst mix (%)"),
      Panel("load", "alone_percent", "headroom (%)", "if lanes did not slow each other (%)")};
  DrawMostBad(figure, false);
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure12ByExponent() {
  Figure figure =
      MakeRun("12-exponent", "Figures 12 and 13 by how much of a lost percent is felt (ours)",
              {"gain_percent", "bad_percent"}, RateExponentClaims, 1);
  for (const char* planner : kRunPlanners) {
    FigureSeries series{planner, {}};
    for (const double exponent : kExponents) {
      FigurePoint point = Point(exponent, "", "equal");
      point.answer = [=](const ReproduceOptions& options) {
        return RunByExponent(MixFiles(options), planner, exponent, options);
      };
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  const char* const x_label = "exponent of latency over share";
  figure.panels = {Panel("load", "gain_percent", x_label, "rate over SBP's, mean gain (%)"),
                   Panel("load", "bad_percent", x_label, "late or dropped, worst mix (%)")};
  for (FigurePanel& panel : figure.panels) panel.x_min = kExponents[0];
  figure.panels[0].y_min = -30;
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure13OnLoads() {
  Figure figure = MakeRun("13-loads", "Runs of Figure 15's 1,023 loads (ours)",
                          {"rate_rps", "bad_percent"}, RunLoadClaims, 1);
  for (const char* planner : kRunPlanners) {
    figure.series.push_back({planner, {Point(0, "", "equal")}});
  }
  figure.run = [](const ReproduceOptions& options) -> Expected<FigureData> {
    FigureData data;
    for (const char* planner : kRunPlanners) {
      auto rows = RunLoads(File(options, "equal"), planner);
      if (!rows) return std::unexpected(rows.error());
      data[planner] = std::move(*rows);
    }
    return data;
  };
  figure.panels = {Panel("bad_percent", "", "late or dropped (%)", "of loads planned for (%)")};
  figure.panels[0].cdf = true;
  figure.panels[0].counted = "loads";
  figure.panels[0].y_max = 100;
  return figure;
}

Figure Figure14() {
  Figure figure = Make("14", "Rates that rise and fall: 1,800 s (Section 6.2)",
                       {"offered_rps", "goodput_rps", "bad_percent", "share_percent"}, WaveClaims);
  figure.most_seeds = 0;
  figure.source = RunSource;
  figure.question = Question::kTimeline;
  FigurePoint point = Point(0, "", "waves");
  figure.series.push_back({kGpuletInt, {point}});
  point.settings = {"plan.planner=nexus"};
  figure.series.push_back({kSbp, {point}});
  FigurePanel models =
      Panel("load", "goodput_rps", "s", "answered in time (requests/s)", kGpuletInt);
  models.stacked = true;
  figure.panels = {models, Panel("load", "share_percent", "s", "shares in use, of 400 %"),
                   Panel("load", "bad_percent", "s", "late or dropped in 20 s (%)")};
  figure.panels_in_row = 1;
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
  for (Figure (*make)() :
       {Figure3, Figure4, Figure5, Figure6, Figure8, Figure9, Figure12, Figure12ByExponent,
        Figure13, Figure13Frames, Figure13ByHeadroom, Figure13OnLoads, Figure14, Figure15,
        Figure15ByChecks, Figure15ByExponent, Figure16}) {
    paper.figures.push_back(make());
  }
  return paper;
}

}  // namespace tactus
