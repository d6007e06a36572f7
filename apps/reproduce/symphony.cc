// Symphony's Table 2 and its Figures. Each experiment is a scenario and
// settings; what they share is which systems they compare.
#include <cmath>

#include <fmt/format.h>

#include "reproduce/figure.h"
#include "reproduce/grid_figure.h"
#include "reproduce/partition_figure.h"
#include "reproduce/scheduler_figure.h"
#include "reproduce/symphony_claims.h"

namespace tactus {
namespace {

struct System {
  const char* label;
  const char* policy;
  const char* setting = nullptr;  // besides
};

// Rivals at the best setting that we found for them.
constexpr System kOursSystem = {kOurs, "symphony:gather=window,aim=0.8,lead=0.1"};
constexpr System kPublishedSystem = {kPublished, "symphony:gather=window"};
constexpr System kPrefixSystem = {"Symphony (prefix)", "symphony"};
constexpr System kClockworkSystem = {kClockwork, "clockwork"};
constexpr System kCostlySystem = {kCostlyClockwork, "clockwork", "candidate_cost_us=0.5"};
constexpr System kNexusSystem = {kNexus, "nexus"};
constexpr System kNexus8System = {kNexus8, "nexus:frontends=8"};
constexpr System kShepherdSystem = {kShepherd, "shepherd"};
constexpr System kTimeoutSystem = {kTimeout, "timeout:fill=0.65,share=0.35"};
constexpr System kTimeoutAloneSystem = {kTimeout, "timeout:fill=0.8,share=0.2"};  // Table 2
constexpr System kEagerSystem = {kEager, "symphony:when=eager"};
constexpr System kEagerWindowSystem = {"eager (window)", "symphony:when=eager,gather=window"};

// Those that most figures compare, and some more.
std::vector<System> Systems(const std::vector<System>& more = {},
                            const System& timeout = kTimeoutSystem) {
  std::vector<System> systems = {kOursSystem,  kPublishedSystem, kClockworkSystem,
                                 kNexusSystem, kShepherdSystem,  timeout};
  systems.insert(systems.end(), more.begin(), more.end());
  return systems;
}

std::vector<std::string> Settings(const System& system, const std::vector<std::string>& more) {
  std::vector<std::string> settings = {fmt::format("policy={}", system.policy)};
  if (system.setting != nullptr) settings.push_back(system.setting);
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// One point for each x, at which `key` is `factor` times x.
FigureSeries Along(const System& system, const std::string& scenario, const std::string& key,
                   const std::vector<double>& xs, const std::vector<std::string>& more = {},
                   const std::string& group = "", double factor = 1) {
  FigureSeries series{group.empty() ? system.label : fmt::format("{}: {}", group, system.label),
                      {}};
  for (const double x : xs) {
    FigurePoint& point = series.points.emplace_back();
    point.x = x;
    point.scenario = scenario;
    point.settings = Settings(system, more);
    point.settings.push_back(fmt::format("{}={:g}", key, factor * x));
  }
  return series;
}

FigurePoint Named(double x, const char* name, const std::string& scenario, const System& system,
                  const std::vector<std::string>& more = {},
                  std::optional<double> paper = std::nullopt) {
  FigurePoint point;
  point.x = x;
  point.name = name;
  point.scenario = scenario;
  point.settings = Settings(system, more);
  point.paper = paper;
  return point;
}

Figure Make(const char* id, const char* title, Question question,
            std::vector<Claim> (*claims)(const FigureData&)) {
  Figure figure;
  figure.id = id;
  figure.title = title;
  figure.question = question;
  figure.claims = claims;
  return figure;
}

Figure Table2() {
  Figure figure = Make("table2", "One model on 8 GPUs", Question::kPeak, Table2Claims);
  using Numbers = std::pair<std::optional<double>, std::optional<double>>;
  const std::vector<std::pair<System, Numbers>> rows = {{kOursSystem, {}},
                                                        {kPublishedSystem, {5264, 926}},
                                                        {kPrefixSystem, {}},
                                                        {kClockworkSystem, {1358, 458}},
                                                        {kCostlySystem, {}},
                                                        {kNexusSystem, {4027, 618}},
                                                        {kShepherdSystem, {4445, 778}},
                                                        {kTimeoutAloneSystem, {}}};
  for (const auto& [system, paper] : rows) {
    figure.series.push_back(
        {system.label,
         {Named(1, "ResNet50", "table2-resnet50", system, {}, paper.first),
          Named(2, "InceptionResNetV2", "table2-inceptionresnetv2", system, {}, paper.second)}});
  }
  figure.panels = {Bars("peak_rps", "peak goodput (requests/s)"),
                   Bars("of_staggered", "part of the staggered bound"),
                   Bars("overload", "goodput at 1.5 x peak over the peak's")};
  return figure;
}

// Table 2's settings, looked at more closely: one question, two groups.
Figure Closely(const char* id, const char* title, Question question,
               std::vector<Claim> (*claims)(const FigureData&), const char* x, const char* x_label,
               const char* y_label) {
  Figure figure = Make(id, title, question, claims);
  for (const auto& [group, scenario] :
       {std::pair{"ResNet50", "table2-resnet50"},
        std::pair{"InceptionResNetV2", "table2-inceptionresnetv2"}}) {
    for (const System& system : Systems({}, kTimeoutAloneSystem)) {
      figure.series.push_back(
          {fmt::format("{}: {}", group, system.label), {Named(0, "", scenario, system)}});
    }
    FigurePanel panel = Lines("percent", x_label, y_label, group);
    panel.x = x;
    panel.y_max = 100;
    figure.panels.push_back(panel);
  }
  return figure;
}

Figure Figure2() {
  Figure figure = Make("2", "Ten ResNet50 on 24 GPUs, SLO 100 ms: stability and use of GPUs",
                       Question::kRun, FlatTopClaims);
  const std::vector<double> loads = {1000, 2000,  3000,  4500,  6000,  7500,
                                     9000, 10500, 12000, 14000, 16000, 20000};
  for (const System& system : Systems({kEagerSystem})) {
    figure.series.push_back(Along(system, "fig02", "rate_rps", loads));
  }
  figure.panels = {Lines("goodput_rps", "offered requests/s", "goodput (requests/s)"),
                   Lines("busy_percent", "offered requests/s", "GPU time in use (%)"),
                   Lines("lanes_touched", "offered requests/s", "GPUs that ran a batch")};
  return figure;
}

// l(b) = b + beta ms and an SLO of 2 l(8): left. Timeouts as a share of the SLO: right.
Figure Figure6() {
  Figure figure =
      Make("6", "Deferred against eager, and against timeouts", Question::kPeak, CaseStudyClaims);
  const char* const kBeta = "by batching effect";
  for (const System& system : {kOursSystem, kPublishedSystem, kEagerSystem, kEagerWindowSystem}) {
    FigureSeries series{fmt::format("{}: {}", kBeta, system.label), {}};
    for (int beta = 1; beta <= 15; beta += 2) {
      FigurePoint& point = series.points.emplace_back();
      point.x = beta;
      point.scenario = "fig06-synthetic";
      point.settings = Settings(system, {fmt::format("models.*.profile_as=beta-{}", beta),
                                         fmt::format("models.*.slo_ms={}", 2 * (8 + beta))});
    }
    figure.series.push_back(std::move(series));
  }
  FigurePanel panel =
      Lines("peak_rps", "beta / alpha", "peak over published's", kBeta, "10 models, 32 GPUs");
  panel.relative_to = fmt::format("{}: {}", kBeta, kPublished);
  figure.panels.push_back(panel);
  for (const auto& [group, scenario, more] :
       {std::tuple{"one ResNet50", "table2-resnet50", "models.*.slo_ms=50"},
        std::tuple{"A100 zoo", "zoo-a100-all", "lanes.count=64"}}) {
    FigureSeries timeouts{fmt::format("{}: timeout", group), {}};
    FigureSeries windows{fmt::format("{}: timeout (window)", group), {}};
    for (const int percent : {0, 5, 10, 20, 30, 40, 50, 60, 70, 80}) {
      const double share = percent / 100.0;
      for (auto& [series, gather] :
           {std::pair{&timeouts, "prefix"}, std::pair{&windows, "window"}}) {
        FigurePoint& point = series->points.emplace_back();
        point.x = percent;
        point.scenario = scenario;
        // share=0 would mean that none is set.
        point.settings = {
            percent == 0
                ? fmt::format("policy=symphony:when=eager,gather={}", gather)
                : fmt::format("policy=symphony:when=timeout,share={},gather={}", share, gather),
            more};
      }
    }
    figure.series.push_back(std::move(timeouts));
    figure.series.push_back(std::move(windows));
    for (const System& system : {kOursSystem, kPublishedSystem}) {
      FigureSeries level{fmt::format("{}: {}", group, system.label),
                         {Named(0, "", scenario, system, {more})}};
      figure.series.push_back(std::move(level));
    }
    FigurePanel right = Lines("peak_rps", "timeout (% of the SLO)", "peak over published's", group);
    right.relative_to = fmt::format("{}: {}", group, kPublished);
    figure.panels.push_back(right);
  }
  return figure;
}

Figure Figure9() {
  Figure figure = Make("9", "Mixed models on 64 GPUs", Question::kPeak, ZooClaims);
  const std::vector<std::pair<const char*, const char*>> zoos = {
      {"1080Ti mixed", "zoo-1080ti-all"}, {"1080Ti strong", "zoo-1080ti-strong"},
      {"1080Ti weak", "zoo-1080ti-weak"}, {"A100 mixed", "zoo-a100-all"},
      {"A100 strong", "zoo-a100-strong"}, {"A100 weak", "zoo-a100-weak"}};
  for (const System& system : Systems({kNexus8System, kEagerSystem})) {
    FigureSeries series{system.label, {}};
    double x = 1;
    for (const auto& [name, scenario] : zoos) {
      series.points.push_back(Named(x++, name, scenario, system, {"duration_s=12"}));
    }
    figure.series.push_back(std::move(series));
  }
  figure.panels = {Bars("peak_rps", "peak goodput (requests/s)"),
                   Bars("of_fluid", "part of the fluid limit"),
                   Bars("overload", "goodput at 1.5 x peak over the peak's")};
  figure.panels_in_row = 1;
  return figure;
}

Figure Figure10() {
  Figure figure = Make("10", "GPUs (A100) for 15,000 requests/s (no bar: over 256)",
                       Question::kLeastLanes, LeastLanesClaims);
  for (const System& system : Systems({kCostlySystem})) {
    figure.series.push_back(
        {system.label,
         {Named(1, "ResNet50, SLO 25 ms", "fig10-resnet50", system, {"duration_s=7"}),
          Named(2, "37 models", "zoo-a100-all", system, {"rate_rps=15000", "duration_s=7"})}});
  }
  figure.panels = {Bars("lanes", "least GPUs")};
  return figure;
}

Figure Figure11() {
  Figure figure = Make("11", "20 models like ResNet50 on 32 GPUs: SLO; popularity; arrivals",
                       Question::kPeak, CharacteristicsClaims);
  for (const char* popularity : {"equal", "zipf"}) {
    for (const char* process : {"poisson", "gamma"}) {
      const std::string group = fmt::format("{} {}", popularity, process);
      for (const System& system : Systems()) {
        figure.series.push_back(Along(
            system, "fig11", "models.*.slo_ms", {15, 20, 25, 30, 40, 50, 75, 100},
            {fmt::format("popularity={}", popularity), fmt::format("process={}", process)}, group));
      }
      figure.panels.push_back(Lines("peak_rps", "SLO (ms)", "peak goodput (requests/s)", group));
    }
  }
  figure.panels_in_row = 2;
  return figure;
}

Figure Figure13() {
  Figure figure =
      Make("13", "20 models, SLO 100 ms: goodput by GPUs", Question::kPeak, ScalingClaims);
  for (const System& system : {kOursSystem, kPublishedSystem, kClockworkSystem, kCostlySystem}) {
    figure.series.push_back(Along(system, "fig11", "lanes.count", {8, 16, 32, 64, 96, 128},
                                  {"models.*.slo_ms=100", "duration_s=7"}));
  }
  figure.panels = {Lines("peak_rps", "GPUs", "peak goodput (requests/s)")};
  return figure;
}

Figure Figure14() {
  Figure figure = Make("14", "20 models like ResNet50 on 32 GPUs: delay of the network",
                       Question::kPeak, NetworkClaims);
  const std::vector<std::pair<const char*, std::vector<double>>> groups = {
      {"RDMA", {0, 10, 20, 33, 50}}, {"TCP", {0, 1000, 3034, 6000, 9000, 12000, 16000, 24000}}};
  for (const auto& [group, delays] : groups) {
    for (const int slo : {20, 25, 50, 100}) {
      FigureSeries series{fmt::format("{}: SLO {} ms", group, slo), {}};
      for (const double us : delays) {
        FigurePoint& point = series.points.emplace_back();
        point.x = us;
        point.scenario = "fig11";
        point.settings = {
            fmt::format("policy=symphony:gather=window,aim=0.8,lead=0.1,ctrl={:g}", us),
            fmt::format("models.*.slo_ms={}", slo)};
      }
      figure.series.push_back(std::move(series));
    }
    figure.panels.push_back(Lines("peak_rps", "delay of a batch (us)", "peak goodput (requests/s)",
                                  group, fmt::format("in the range of {}", group).c_str()));
  }
  return figure;
}

Figure Figure15() {
  Figure figure = Make("15", "24 models with changing rates on up to 512 GPUs", Question::kTimeline,
                       TimelineClaims);
  figure.series = {{kAllThere, {Named(0, "", "fig15", kOursSystem, {"autoscale.interval_s=0"})}},
                   {kFollowed, {Named(0, "", "fig15", kOursSystem)}}};
  FigurePanel models = Lines("goodput_rps", "s", "goodput (requests/s), by model", kAllThere, "");
  models.stacked = true;
  figure.panels = {models, Lines("busy_lanes", "s", "GPUs in use"),
                   Lines("advised_lanes", "s", "GPUs advised"),
                   Lines("bad_percent", "s", "bad requests (%)")};
  figure.panels_in_row = 2;
  return figure;
}

}  // namespace

Paper SymphonyPaper() {
  Paper paper;
  paper.key = "symphony";
  paper.title = "Symphony";
  paper.basis = "the latencies of the paper's Tables 2 to 4 in virtual time";
  paper.columns = {"paper",         "peak_rps",     "half_width_rps", "of_staggered",
                   "of_fluid",      "overload",     "lanes",          "fluid_lanes",
                   "offered_rps",   "goodput_rps",  "bad_percent",    "p99_ms",
                   "mean_batch",    "queue_p50_ms", "queue_p99_ms",   "busy_percent",
                   "lanes_touched", "size",         "percent",        "delay_ms",
                   "ratio",         "busy_lanes",   "open_lanes",     "advised_lanes"};
  paper.figures.push_back(Table2());
  paper.figures.push_back(Closely("1", "Batch sizes at the peak of each system",
                                  Question::kBatchSizes, BatchSizeClaims, "size", "batch size",
                                  "batches no larger (%)"));
  paper.figures.push_back(Figure2());
  paper.figures.push_back(Figure6());
  paper.figures.push_back(GridFigure());
  paper.figures.push_back(Figure9());
  paper.figures.push_back(Figure10());
  paper.figures.push_back(Figure11());
  paper.figures.push_back(Closely("12", "Queueing delay at the peak of each system",
                                  Question::kQueueingDelay, QueueingClaims, "delay_ms",
                                  "queueing delay (ms)", "requests (%)"));
  paper.figures.push_back(SchedulerFigure());
  paper.figures.push_back(Figure13());
  paper.figures.push_back(Figure14());
  paper.figures.push_back(Figure15());
  paper.figures.push_back(PartitionFigure());
  return paper;
}

}  // namespace tactus
