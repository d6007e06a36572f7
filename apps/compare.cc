// tactus compare: policies side by side on one scenario, over seeds and along a sweep.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "check/doubts.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "experiment/progress.h"
#include "output_file.h"

namespace tactus {
namespace {

struct CompareOptions {
  std::string scenario;
  std::vector<std::string> policies;
  int seeds = 1;
  std::optional<std::uint64_t> first_seed;  // the scenario's, else
  std::vector<std::string> settings;
  std::string sweep;
  std::string json;
  bool wide = false;
};

// One point of a figure's axis; one point without a key where there is no sweep.
struct Point {
  std::string key;
  std::string value;
};

// "rate_rps=100,200,400"; a value that is a list itself uses '+', as everywhere on the command
// line.
Expected<std::vector<Point>> ReadSweep(const std::string& sweep) {
  if (sweep.empty()) return std::vector<Point>{{}};
  const auto setting = SplitSetting(sweep);
  if (!setting) return InvalidArgument("--sweep " + setting.error().message);
  std::vector<Point> points;
  std::string_view rest = setting->second;
  for (;;) {
    const std::size_t comma = rest.find(',');
    points.push_back({setting->first, std::string(rest.substr(0, comma))});
    if (comma == std::string_view::npos) return points;
    rest.remove_prefix(comma + 1);
  }
}

// Every experiment of the comparison, so that a mistake shows before the first one runs.
struct Series {
  Point point;
  std::string policy;
  std::vector<Experiment> experiments;  // one a seed
};

// Where lanes are chosen, the choice is the point's.
Expected<Experiment> AtPoint(const CompareOptions& options, const Experiment& base,
                             const Point& point) {
  if (point.key.empty()) return base;
  Experiment changed = base;
  const auto set = Override(changed.scenario, point.key, point.value);
  if (!set) return InvalidArgument("--sweep " + set.error().message);
  if (base.chosen_lanes.empty()) return changed;
  std::vector<std::string> settings = options.settings;
  settings.push_back(point.key + "=" + point.value);
  return LoadExperiment(options.scenario, settings, {options.json});
}

Expected<std::vector<Series>> PlannedSeries(const CompareOptions& options) {
  const auto base = LoadExperiment(options.scenario, options.settings, {options.json});
  if (!base) return std::unexpected(base.error());
  const auto points = ReadSweep(options.sweep);
  if (!points) return std::unexpected(points.error());
  const std::uint64_t first = options.first_seed.value_or(base->scenario.seed);
  const std::vector<std::string> policies = JoinPolicyOptions(options.policies);
  if (auto checked = CheckPolicies(policies); !checked) return std::unexpected(checked.error());
  std::vector<Series> plan;
  for (const Point& point : *points) {
    const auto changed = AtPoint(options, *base, point);
    if (!changed) return std::unexpected(changed.error());
    for (const std::string& policy : policies) {
      Series& series = plan.emplace_back(Series{point, policy, {}});
      for (int i = 0; i < options.seeds; ++i) {
        Experiment& experiment = series.experiments.emplace_back(*changed);
        experiment.scenario.policy = policy;
        experiment.scenario.seed = first + static_cast<std::uint64_t>(i);
      }
    }
  }
  return plan;
}

// What simulate would say of each point's profile and policy; what points share, once.
std::string Doubts(const std::vector<Series>& plan) {
  std::string text;
  for (const Series& series : plan) {
    const Experiment& experiment = series.experiments.front();
    for (const std::string& doubts : {ScenarioDoubts(experiment.scenario, experiment.profile),
                                      PolicyDoubts(experiment, series.policy)}) {
      if (text.find(doubts) == std::string::npos) text += doubts;
    }
  }
  return text;
}

int RunCompare(const CompareOptions& options) {
  const auto plan = PlannedSeries(options);
  if (!plan) return ReportBadInput(plan.error());
  Report report;
  std::vector<RunReport> rows;
  {
    const std::size_t each = plan->front().experiments.size();
    Progress progress(plan->size() * each);
    std::size_t done = 0;
    for (const Series& series : *plan) {
      const std::size_t first = report.runs.size();
      for (const Experiment& experiment : series.experiments) {
        progress.Show(done++, series.policy);
        auto run = RunSimulated(experiment);
        if (!run) return ReportBadInput(run.error());
        if (!series.point.key.empty()) run->settings[series.point.key] = series.point.value;
        report.runs.push_back(std::move(*run));
      }
      rows.push_back(Average(std::span(report.runs).subspan(first)));
    }
  }
  const std::size_t seeds = plan->front().experiments.size();
  fmt::print("{}{}{}\n{}", Heading(rows.front()), Doubts(*plan),
             seeds > 1 ? fmt::format("each row: the mean of {} seeds\n", seeds) : "",
             ToTable(rows, options.wide) + TuningNotes(JoinPolicyOptions(options.policies),
                                                       plan->front().experiments.front().scenario));
  if (!rows.front().pipelines.empty()) fmt::print("\n{}", PipelineTable(rows));
  if (options.json.empty()) return 0;
  const auto written = WriteJson(report, options.json);
  return written ? 0 : ReportBadInput(written.error());
}

}  // namespace

void AddCompare(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand(
      "compare", "Run several policies on one scenario and show them side by side");
  AddOption(*command, "scenario", options->scenario, ReadFile(), "Scenario file (TOML)")
      ->required();
  command->add_option("--policies", options->policies, "Policies to compare: edgeserving,all-final")
      ->required()
      ->delimiter(',')
      ->option_text(kCommaList)
      ->allow_extra_args(false);
  AddOption(*command, "--seeds", options->seeds, SeedCount(),
            "How many seeds to average over, from --first-seed")
      ->capture_default_str();
  AddOption(*command, "--first-seed", options->first_seed, SeedRange(),
            "The first seed; the others follow it (default: the scenario's)");
  command->add_option("--set", options->settings, "Change a key: rate_rps=200, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false);
  command->add_option("--sweep", options->sweep, "One run for each value: rate_rps=100,200,400");
  AddOption(*command, "--json", options->json, WritableFile(), "Write every run to this file");
  command->add_flag("--wide", options->wide, "Show every model, and how requests ended");
  command->callback([options, &context] { context.exit_code = RunCompare(*options); });
}

}  // namespace tactus
