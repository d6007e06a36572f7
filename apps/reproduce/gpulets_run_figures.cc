// Those of gpu-lets' figures that run plans: 5, 13 and 14, and 12 by the exponent.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reproduce/gpulets_figures.h"
#include "reproduce/gpulets_runs.h"

namespace tactus {
namespace {

constexpr double kSharedRates[] = {10, 25, 50, 75, 100, 150, 200, 250, 300};

Expected<std::string> RunSource(const ReproduceOptions& options) {
  return fmt::format("simulated with contention on STAND-IN latencies; {}",
                     options.seeds == 1 ? "one seed" : fmt::format("{} seeds", options.seeds));
}

Figure MakeRun(const char* id, const char* title, std::vector<std::string> columns,
               std::vector<Claim> (*claims)(const FigureData&), int most_seeds) {
  Figure figure = GpuletFigure(id, title, std::move(columns), claims);
  figure.most_seeds = most_seeds;
  figure.source = [most_seeds](const ReproduceOptions& options) -> Expected<std::string> {
    ReproduceOptions used = options;
    if (most_seeds > 0) used.seeds = std::min(used.seeds, most_seeds);
    return RunSource(used);
  };
  return figure;
}

// What may be late or dropped, in every panel.
void DrawMostBad(Figure& figure) {
  for (FigurePanel& panel : figure.panels) {
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
      FigurePoint point = GpuletPoint(rate_rps, "", "equal");
      point.answer = [=](const FigurePoint& asked, const ReproduceOptions& options) {
        return RunShared(ScenarioOf(asked, options), sharing, rate_rps);
      };
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  figure.panels = {Lines("lenet_bad_percent", "requests/s of each", "late or dropped (%)"),
                   Lines("vgg_bad_percent", "requests/s of each", "late or dropped (%)")};
  figure.panels[0].title = "LeNet";
  figure.panels[1].title = "VGG-16";
  figure.panels_in_row = 2;
  return figure;
}

// Each planner's, by RunMost or RunMostFrames, over the first `count` mixes.
std::vector<FigureSeries> RunsOverMixes(decltype(&RunMost) run, std::size_t count) {
  std::vector<FigureSeries> series;
  for (const char* planner : kMixPlanners) {
    const auto answer = [=](const SetScenario& mix, const ReproduceOptions& options) {
      return run(mix, planner, kHeadroom, options);
    };
    series.push_back(OverMixes(planner, answer, count));
  }
  return series;
}

Figure Figure13() {
  Figure figure =
      MakeRun("13", "What is late or dropped at the largest rate planned for",
              {"rate_rps", "headroom_percent", "bad_percent", "worst_percent", "alone_percent"},
              ViolationClaims, 0);
  figure.series = RunsOverMixes(RunMost, kGpuletMixes.size());
  figure.panels = {Bars("bad_percent", "late or dropped (%)"),
                   Bars("alone_percent", "if lanes did not slow each other (%)")};
  DrawMostBad(figure);
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
  figure.series = RunsOverMixes(RunMostFrames, kGpuletApplications);
  figure.panels = {Bars("bad_percent", "frames late or dropped (%)"),
                   Bars("requests_percent", "requests by themselves (%)")};
  DrawMostBad(figure);
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
      FigurePoint point = GpuletPoint(percent, "", "equal");
      point.answer = [=](const FigurePoint& asked,
                         const ReproduceOptions& options) -> Expected<FigureRow> {
        FigureRow worst = {{"bad_percent", 0}, {"alone_percent", 0}};
        for (const SetScenario& mix : MixesOf(asked, options)) {
          const auto row = RunMost(mix, planner, percent / 100, options);
          if (!row) return row;
          for (auto& [column, value] : worst) value = std::max(value, row->at(column));
        }
        return worst;
      };
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  figure.panels = {Lines("bad_percent", "headroom (%)", "late or dropped, worst mix (%)"),
                   Lines("alone_percent", "headroom (%)", "if lanes did not slow each other (%)")};
  DrawMostBad(figure);
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure12ByExponent() {
  Figure figure =
      MakeRun("12-exponent", "Figures 12 and 13 by how much of a lost percent is felt (ours)",
              {"gain_percent", "bad_percent"}, RateExponentClaims, 1);
  for (const char* planner : kRunPlanners) {
    FigureSeries series{planner, {}};
    for (const double exponent : kGpuletExponents) {
      FigurePoint point = GpuletPoint(exponent, "", "equal");
      point.settings = {ExponentSetting(exponent)};
      point.answer = [=](const FigurePoint& asked, const ReproduceOptions& options) {
        return RunMixes(MixesOf(asked, options), planner, options);
      };
      series.points.push_back(std::move(point));
    }
    figure.series.push_back(std::move(series));
  }
  const char* const x_label = "exponent of latency over share";
  figure.panels = {Lines("gain_percent", x_label, "rate over SBP's, mean gain (%)"),
                   Lines("bad_percent", x_label, "late or dropped, worst mix (%)")};
  for (FigurePanel& panel : figure.panels) panel.x_min = kGpuletExponents[0];
  figure.panels[0].y_min = -30;
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure13OnLoads() {
  Figure figure = MakeRun("13-loads", "Runs of Figure 15's 1,023 loads (ours)",
                          {"rate_rps", "bad_percent"}, RunLoadClaims, 1);
  for (const char* planner : kRunPlanners) {
    figure.series.push_back({planner, {GpuletPoint(0, "", "equal")}});
  }
  figure.run = [](const ReproduceOptions& options) -> Expected<FigureData> {
    FigureData data;
    for (const char* planner : kRunPlanners) {
      auto rows = RunLoads(ScenarioOf(GpuletPoint(0, "", "equal"), options), planner);
      if (!rows) return std::unexpected(rows.error());
      data[planner] = std::move(*rows);
    }
    return data;
  };
  figure.panels = {Lines("", "late or dropped (%)", "of loads planned for (%)")};
  figure.panels[0].x = "bad_percent";
  figure.panels[0].cdf = true;
  figure.panels[0].counted = "loads";
  figure.panels[0].y_max = 100;
  return figure;
}

Figure Figure14() {
  Figure figure =
      GpuletFigure("14", "Rates that rise and fall: 1,800 s (Section 6.2)",
                   {"offered_rps", "goodput_rps", "bad_percent", "share_percent"}, WaveClaims);
  figure.most_seeds = 0;
  figure.source = RunSource;
  figure.question = Question::kTimeline;
  FigurePoint point = GpuletPoint(0, "", "waves");
  figure.series.push_back({kGpuletInt, {point}});
  point.settings = {"plan.planner=nexus"};
  figure.series.push_back({kSbp, {point}});
  FigurePanel models = Lines("goodput_rps", "s", "answered in time (requests/s)", kGpuletInt);
  models.stacked = true;
  figure.panels = {models, Lines("share_percent", "s", "shares in use, of 400 %"),
                   Lines("bad_percent", "s", "late or dropped in 20 s (%)")};
  figure.panels_in_row = 1;
  return figure;
}

// Twice the load, of which such devices carry twice as much, and about the interference that Figure
// 9-use is fitted, as the scenario's own is Figure 9's.
Figure Figure14OnProfiledUse() {
  Figure figure = Figure14();
  figure.title = "Twice the rates of Figure 14";
  for (FigureSeries& series : figure.series) {
    series.points[0].settings.insert(
        series.points[0].settings.end(),
        {"rate_rps=500", "plan.interference=-0.152,-0.029,0.328,0.294,0.877"});
  }
  return figure;
}

}  // namespace

std::vector<Figure> GpuletRunFigures() {
  std::vector<Figure> figures;
  for (Figure (*make)() : {Figure5, Figure12ByExponent, Figure13, Figure13Frames,
                           Figure13ByHeadroom, Figure13OnLoads, Figure14}) {
    figures.push_back(make());
  }
  for (Figure (*make)() : {Figure5, Figure13, Figure13Frames, Figure14OnProfiledUse}) {
    figures.push_back(OnProfiledUse(make()));
  }
  return figures;
}

}  // namespace tactus
