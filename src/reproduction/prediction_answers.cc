#include "reproduction/prediction_answers.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/learner.h"
#include "core/prediction_errors.h"
#include "policies/registry.h"
#include "sim/simulation.h"
#include "workload/rate_schedule.h"

namespace tactus {
namespace {

struct Played {
  SimulationResult result;
  std::unique_ptr<Policy> policy;
};

Expected<Played> Play(const Experiment& experiment, const std::optional<LearnedState>& learnt) {
  auto policy = MakePolicy(experiment.scenario.policy);
  if (!policy) return std::unexpected(policy.error());
  if (learnt) {
    if (const auto resumed = ResumePolicy(**policy, *learnt); !resumed) {
      return std::unexpected(resumed.error());
    }
  }
  auto result = Simulate(experiment.scenario, experiment.profile, **policy);
  if (!result) return std::unexpected(result.error());
  return Played{std::move(*result), std::move(*policy)};
}

// What the point's policy is to start from; nothing where it starts from its own beginning.
Expected<std::optional<LearnedState>> LearnBefore(const FigurePoint& point, std::uint64_t seed,
                                                  const ReproduceOptions& options) {
  if (point.learnt_from.empty()) return std::nullopt;
  const auto path = std::filesystem::path(options.scenarios) / (point.learnt_from + ".toml");
  auto experiment = LoadExperiment(path.string(), {});
  if (!experiment) return std::unexpected(experiment.error());
  experiment->scenario.seed = seed;
  auto played = Play(*experiment, std::nullopt);
  if (!played) return std::unexpected(played.error());
  return LearnedBy(*played->policy);
}

std::vector<double> Percents() {
  std::vector<double> percents;
  for (int percent = 1; percent < 100; ++percent) percents.push_back(percent);
  percents.insert(percents.end(), {99.5, 99.9, 100});
  return percents;
}

// Of answered requests that count, by level: the highest priority and all others.
std::array<std::vector<Duration>, 2> Latencies(const SimulationResult& result) {
  int highest = result.models.front().priority;
  for (const Model& model : result.models) highest = std::min(highest, model.priority);
  std::array<std::vector<Duration>, 2> latencies;
  for (const RequestRecord& record : result.records) {
    if (record.batch == 0 || record.arrival < result.begin || record.arrival >= result.end)
      continue;
    const std::size_t level = result.models[record.model].priority == highest ? 0 : 1;
    latencies[level].push_back(record.ended - record.arrival);
  }
  return latencies;
}

// Adds a run's figures, `share` of each.
void Add(std::map<double, FigureRow>& rows, const Experiment& experiment, const Played& played,
         double share) {
  const RunReport report = MakeReport(experiment.scenario, experiment.profile, played.result);
  if (report.priorities.size() == 2) {
    rows[0]["high_bad_percent"] += share * 100 * report.priorities[0].figures.bad_ratio;
    rows[0]["low_bad_percent"] += share * 100 * report.priorities[1].figures.bad_ratio;
  }
  auto latencies = Latencies(played.result);
  const PredictionErrors* errors = PredictionErrorsOf(*played.policy);
  for (const double percent : Percents()) {
    FigureRow& row = rows[percent];
    row["percent"] = percent;
    row["high_ms"] += share * ToMillis(Percentile(latencies[0], percent));
    row["low_ms"] += share * ToMillis(Percentile(latencies[1], percent));
    if (errors == nullptr) continue;
    row["kernel_error_percent"] += share * 100 * errors->kernel.AbsolutePercentile(percent);
    row["latency_error_percent"] += share * 100 * errors->latency.AbsolutePercentile(percent);
    row["overhead_percent"] += share * 100 * errors->overhead.Percentile(percent);
  }
}

// The scenario as it is in one step of its schedule.
Scenario Minute(const Scenario& whole, const std::vector<RateSchedule>& schedules, std::size_t i) {
  constexpr double kMinute = 60;
  Scenario minute = whole;
  minute.schedule.clear();
  minute.duration_s = kMinute;
  minute.warmup_s = 0;
  minute.seed = 1000 * whole.seed + i;
  const std::vector<double> rates = Rates(whole);
  minute.rate_rps = 0;
  for (std::size_t m = 0; m < rates.size(); ++m) {
    minute.models[m].ratio = rates[m] * schedules[m].steps[i].factor;
    minute.rate_rps += minute.models[m].ratio;
  }
  minute.popularity = Popularity::kRatio;
  return minute;
}

FigureRow MinuteRow(const Experiment& experiment, const Played& played) {
  const RunReport report = MakeReport(experiment.scenario, experiment.profile, played.result);
  FigureRow row = {{"offered_rps", report.all.offered_rps},
                   {"goodput_rps", report.all.goodput_rps}};
  if (report.priorities.size() == 2) {
    row["high_bad_percent"] = 100 * report.priorities[0].figures.bad_ratio;
    row["low_bad_percent"] = 100 * report.priorities[1].figures.bad_ratio;
  }
  if (const PredictionErrors* errors = PredictionErrorsOf(*played.policy)) {
    row["error_p5_percent"] = 100 * errors->kernel.Percentile(5);
    row["error_p50_percent"] = 100 * errors->kernel.Percentile(50);
    row["error_p95_percent"] = 100 * errors->kernel.Percentile(95);
  }
  return row;
}

}  // namespace

Expected<FigureData> Distributions(const std::string& label, Experiment& experiment,
                                   const FigurePoint& point, const ReproduceOptions& options) {
  std::map<double, FigureRow> rows;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    experiment.scenario.seed = static_cast<std::uint64_t>(seed);
    const auto learnt = LearnBefore(point, experiment.scenario.seed, options);
    if (!learnt) return std::unexpected(learnt.error());
    const auto played = Play(experiment, *learnt);
    if (!played) return std::unexpected(played.error());
    Add(rows, experiment, *played, 1.0 / options.seeds);
  }
  return FigureData{{label, std::move(rows)}};
}

Expected<FigureData> Minutes(const std::string& label, const Experiment& experiment,
                             const ReproduceOptions& options) {
  std::vector<std::string> names;
  for (const ScenarioModel& model : experiment.scenario.models) names.push_back(model.name);
  const auto schedules = LoadRateSchedule(experiment.scenario.schedule, names);
  if (!schedules) return std::unexpected(schedules.error());
  const std::size_t minutes =
      std::min(schedules->front().steps.size(), static_cast<std::size_t>(options.minutes));
  FigureData data;
  std::optional<LearnedState> learnt;
  for (std::size_t i = 0; i < minutes; ++i) {
    const Experiment minute{Minute(experiment.scenario, *schedules, i), experiment.profile};
    const auto played = Play(minute, learnt);
    if (!played) return std::unexpected(played.error());
    learnt = LearnedBy(*played->policy);
    const FigureRow row = MinuteRow(minute, *played);
    const auto at = static_cast<double>(i);
    data[label][at] = row;
    for (const auto& [series, column] : {std::pair{"rate: offered", "offered_rps"},
                                         {"rate: in time", "goodput_rps"},
                                         {"violations: high priority", "high_bad_percent"},
                                         {"violations: low priority", "low_bad_percent"},
                                         {"error: P5", "error_p5_percent"},
                                         {"error: median", "error_p50_percent"},
                                         {"error: P95", "error_p95_percent"}}) {
      if (row.contains(column)) data[series][at] = {{"value", row.at(column)}};
    }
  }
  return data;
}

}  // namespace tactus
