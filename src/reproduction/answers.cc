#include "reproduction/answers.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "experiment/experiment.h"
#include "planners/autoscale/advice.h"
#include "policies/registry.h"
#include "reproduction/fleet_answers.h"
#include "reproduction/gpulets_answers.h"
#include "reproduction/partition_answer.h"
#include "reproduction/prediction_answers.h"
#include "reproduction/scheduler_answer.h"
#include "sim/search/peak_goodput.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

constexpr double kOverload = 1.5;  // times the peak

// Of the highest priority and of the one other that there is.
void AddPriorities(FigureRow& row, const RunReport& run) {
  if (run.priorities.size() == 2) {
    for (const auto& [name, level] : {std::pair{"high", 0}, {"low", 1}}) {
      const Summary& figures = run.priorities[static_cast<std::size_t>(level)].figures;
      row[fmt::format("{}_bad_percent", name)] = 100 * figures.bad_ratio;
      row[fmt::format("{}_p50_ms", name)] = figures.p50_ms;
      row[fmt::format("{}_p95_ms", name)] = figures.p95_ms;
      row[fmt::format("{}_p99_ms", name)] = figures.p99_ms;
    }
  }
  if (!run.prediction) return;
  row["error_p50_percent"] = 100 * run.prediction->p50;
  row["error_p95_percent"] = 100 * run.prediction->p95;
  row["error_p99_percent"] = 100 * run.prediction->p99;
}

FigureRow ToRow(const RunReport& run) {
  const Summary& all = run.all;
  FigureRow row = {{"offered_rps", all.offered_rps},
                   {"goodput_rps", all.goodput_rps},
                   {"bad_percent", 100 * all.bad_ratio},
                   {"p50_ms", all.p50_ms},
                   {"p95_ms", all.p95_ms},
                   {"p99_ms", all.p99_ms},
                   {"accuracy_percent", 100 * all.accuracy},
                   {"accuracy_limit_percent", 100 * run.accuracy_limit.value_or(0)},
                   {"mean_batch", all.mean_batch},
                   {"queue_p50_ms", all.queue_p50_ms.value_or(0)},
                   {"queue_p99_ms", all.queue_p99_ms.value_or(0)},
                   {"busy_percent", 100 * BusyRatio(run)}};
  AddPriorities(row, run);
  for (const char* exit : {"layer1", "layer2", "layer3", "final"}) row[exit] = 0;
  for (const ExitShare& exit : all.exits) row[exit.name] = exit.share;
  return row;
}

FigureRow ToRow(const std::vector<RunReport>& runs) {
  FigureRow row = ToRow(Average(runs));
  double touched = 0;
  for (const RunReport& run : runs) touched += run.lanes_touched;
  row["lanes_touched"] = touched / static_cast<double>(runs.size());
  return row;
}

std::vector<std::uint64_t> Seeds(const ReproduceOptions& options) {
  std::vector<std::uint64_t> seeds;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    seeds.push_back(static_cast<std::uint64_t>(seed));
  }
  return seeds;
}

PolicyFactory PolicyOf(const Experiment& experiment) {
  return [name = experiment.scenario.policy] { return MakePolicy(name); };
}

Expected<FigureRow> RunPoint(Experiment& experiment, const ReproduceOptions& options) {
  std::vector<RunReport> runs;
  for (const std::uint64_t seed : Seeds(options)) {
    experiment.scenario.seed = seed;
    auto run = RunSimulated(experiment);
    if (!run) return std::unexpected(run.error());
    runs.push_back(std::move(*run));
  }
  return ToRow(runs);
}

Expected<PeakResult> Peak(const Experiment& experiment, const ReproduceOptions& options,
                          std::vector<double> multiples) {
  PeakOptions search;
  search.seeds = Seeds(options);
  search.multiples = std::move(multiples);
  return FindPeakGoodput(experiment.scenario, experiment.profile, PolicyOf(experiment), search);
}

double MeanGoodput(const std::vector<RunReport>& runs) {
  return runs.empty() ? 0 : Average(runs).all.goodput_rps;
}

Expected<FigureRow> PeakPoint(const Experiment& experiment, const ReproduceOptions& options) {
  const auto found = Peak(experiment, options, {kOverload});
  if (!found) return std::unexpected(found.error());
  FigureRow row;
  const double goodput = MeanGoodput(found->at_peak.runs);
  if (goodput > 0) {
    row = ToRow(found->at_peak.runs);
    row["overload"] = MeanGoodput(found->beside[0].runs) / goodput;
  }
  const PeakGoodput& peak = found->peak;
  row["peak_rps"] = peak.rate_rps;
  row["half_width_rps"] = peak.half_width_rps;
  row["of_fluid"] = peak.rate_rps / peak.fluid_limit_rps;
  if (peak.staggered_bound_rps.value_or(0) > 0) {
    row["of_staggered"] = peak.rate_rps / *peak.staggered_bound_rps;
  }
  return row;
}

Expected<FigureRow> LeastLanesPoint(const Experiment& experiment, const ReproduceOptions& options) {
  const auto models = AffineModels(experiment.scenario, experiment.profile);
  if (!models) return std::unexpected(models.error());
  const auto lanes = FindLeastLanes(experiment.scenario, experiment.profile, PolicyOf(experiment),
                                    {.seeds = Seeds(options), .most = 256});
  if (!lanes) return std::unexpected(lanes.error());
  FigureRow row = {{"fluid_lanes", FluidLanes(*models)}};
  if (lanes->lanes > 0) row["lanes"] = lanes->lanes;  // else no bar: 256 do not sustain it
  return row;
}

Expected<SimulationResult> RunOnce(const Experiment& experiment) {
  auto policy = MakePolicy(experiment.scenario.policy);
  if (!policy) return std::unexpected(policy.error());
  return Simulate(experiment.scenario, experiment.profile, **policy);
}

// The policy at the peak of each seed, to look at more closely.
Expected<std::vector<SimulationResult>> RunAtPeaks(Experiment& experiment,
                                                   const ReproduceOptions& options) {
  const auto found = Peak(experiment, options, {});
  if (!found) return std::unexpected(found.error());
  std::vector<SimulationResult> results;
  for (std::size_t i = 0; i < found->searches.size(); ++i) {
    const double rate_rps = found->searches[i].rate_rps;
    if (rate_rps > 0) SetTotalRate(experiment.scenario, rate_rps);
    experiment.scenario.seed = i + 1;
    auto result = RunOnce(experiment);
    if (!result) return std::unexpected(result.error());
    results.push_back(std::move(*result));
  }
  return results;
}

// Of all runs' batches together.
std::map<double, FigureRow> BatchSizes(const Experiment& experiment,
                                       const std::vector<SimulationResult>& results) {
  std::map<int, double> shares;
  for (const SimulationResult& result : results) {
    const RunReport run = MakeReport(experiment.scenario, experiment.profile, result);
    for (const BatchShare& of : run.all.batch_sizes) {
      shares[of.size] += of.share / static_cast<double>(results.size());
    }
  }
  std::map<double, FigureRow> rows;
  const int largest = shares.empty() ? 0 : shares.rbegin()->first;
  double share = 0;
  for (int size = 0; size <= largest; ++size) {
    if (const auto at = shares.find(size); at != shares.end()) share += at->second;
    rows[size] = {{"percent", 100 * share}, {"size", size}};
  }
  return rows;
}

std::map<double, FigureRow> QueueingDelays(const std::vector<SimulationResult>& results) {
  std::vector<Duration> delays;
  for (const SimulationResult& result : results) {
    for (const RequestRecord& record : result.records) {
      if (record.batch == 0 || record.arrival < result.begin || record.arrival >= result.end) {
        continue;
      }
      delays.push_back(record.started - record.arrival);
    }
  }
  std::map<double, FigureRow> rows;
  for (int percent = 1; percent <= 100; ++percent) {
    rows[percent] = {{"delay_ms", ToMillis(Percentile(delays, percent))}, {"percent", percent}};
  }
  return rows;
}

struct Step {
  double arrived = 0;
  double good = 0;
  double busy_s = 0;
};

// What the advice would be from one step alone, where nobody follows it.
int AdviceOf(const Experiment& experiment, const FigureRow& row) {
  const Scenario& scenario = experiment.scenario;
  const LoadReading reading{.lanes = scenario.lanes,
                            .requests = 1,
                            .bad_ratio = row.at("bad_percent") / 100,
                            .idle_ratio = 1 - row.at("busy_lanes") / scenario.lanes};
  return AdviseLanes(reading, {.bad_threshold = scenario.bad_threshold,
                               .idle_threshold = scenario.idle_threshold,
                               .idle_kept = scenario.idle_kept,
                               .least = scenario.scale_least,
                               .most = 2 * scenario.lanes});
}

// What is in use of devices that are split anew, of each as 100 %.
void AddShares(std::map<double, FigureRow>& rows, const SimulationResult& result) {
  auto next = result.layout.begin();
  double percent = 0;
  for (auto& [at, row] : rows) {
    for (; next != result.layout.end() && next->at_s <= at; ++next) {
      percent = 100 * next->devices_used;
    }
    row["share_percent"] = percent;
  }
}

// The lanes as the scaler saw them; without scaling all are open.
void AddLanes(std::map<double, FigureRow>& rows, const Experiment& experiment,
              const SimulationResult& result) {
  auto next = result.scaling.begin();
  double open = experiment.scenario.lanes;
  double advised = open;
  for (auto& [at, row] : rows) {
    for (; next != result.scaling.end() && next->at_s <= at; ++next) {
      open = next->open;
      advised = next->advised;
    }
    row["open_lanes"] = open;
    row["advised_lanes"] = result.scaling.empty() ? AdviceOf(experiment, row) : advised;
  }
}

FigureData Timeline(const std::string& label, const Experiment& experiment,
                    const SimulationResult& result) {
  constexpr int kSteps = 90;
  const double step_s = experiment.scenario.duration_s / kSteps;
  const std::size_t models = result.models.size();
  std::vector<std::vector<Step>> steps(models + 1, std::vector<Step>(kSteps));
  const auto step_at = [&](TimePoint at) {
    return std::clamp(static_cast<int>(ToSeconds(at - kStart) / step_s), 0, kSteps - 1);
  };
  for (const RequestRecord& record : result.records) {
    for (const std::size_t m : {std::size_t{record.model}, models}) {
      Step& arrived = steps[m][step_at(record.arrival)];
      ++arrived.arrived;
      arrived.good += record.outcome == Outcome::kMet ? 1 : 0;
      if (record.batch == 0) continue;
      steps[m][step_at(record.started)].busy_s +=
          ToSeconds(record.ended - record.started) / record.batch;
    }
  }
  FigureData data;
  for (std::size_t m = 0; m <= models; ++m) {
    auto& rows = data[m == models ? label : label + ": " + result.models[m].name];
    for (int i = 0; i < kSteps; ++i) {
      const Step& step = steps[m][i];
      rows[(i + 1) * step_s] = {
          {"offered_rps", step.arrived / step_s},
          {"goodput_rps", step.good / step_s},
          {"bad_percent", step.arrived > 0 ? 100 * (1 - step.good / step.arrived) : 0},
          {"busy_lanes", step.busy_s / step_s}};
    }
    if (m != models) continue;
    AddLanes(rows, experiment, result);
    if (!result.layout.empty()) AddShares(rows, result);
  }
  return data;
}

// Step by step the mean over the seeds.
Expected<FigureData> MeanTimeline(const std::string& label, Experiment& experiment,
                                  const ReproduceOptions& options) {
  FigureData mean;
  const std::vector<std::uint64_t> seeds = Seeds(options);
  for (const std::uint64_t seed : seeds) {
    experiment.scenario.seed = seed;
    const auto result = RunOnce(experiment);
    if (!result) return std::unexpected(result.error());
    for (const auto& [series, rows] : Timeline(label, experiment, *result)) {
      for (const auto& [at, row] : rows) {
        for (const auto& [column, value] : row) {
          mean[series][at][column] += value / static_cast<double>(seeds.size());
        }
      }
    }
  }
  return mean;
}

Expected<FigureData> Closely(Question question, const std::string& label, Experiment& experiment,
                             const ReproduceOptions& options) {
  if (question == Question::kTimeline) return MeanTimeline(label, experiment, options);
  const auto results = RunAtPeaks(experiment, options);
  if (!results) return std::unexpected(results.error());
  if (question == Question::kBatchSizes) {
    return FigureData{{label, BatchSizes(experiment, *results)}};
  }
  return FigureData{{label, QueueingDelays(*results)}};
}

}  // namespace

Expected<Experiment> LoadPoint(const FigurePoint& point, const ReproduceOptions& options) {
  const std::filesystem::path folder = options.scenarios;
  std::vector<std::string> settings = point.settings;
  if (!point.profile.empty()) settings.push_back("profile=" + (folder / point.profile).string());
  return LoadExperiment((folder / (point.scenario + ".toml")).string(), settings);
}

Expected<FigureData> Answer(Question question, const std::string& label, const FigurePoint& point,
                            const ReproduceOptions& options) {
  if (question == Question::kFleet) return FleetAnswer(label, point, options);
  Expected<FigureRow> row;
  if (question == Question::kPartition || question == Question::kScheduler ||
      question == Question::kGpulets) {
    row = question == Question::kPartition   ? PartitionAnswer(point)
          : question == Question::kScheduler ? SchedulerAnswer(point, options)
                                             : GpuletsAnswer(point, options);
    if (!row) return std::unexpected(row.error());
    if (row->empty()) return FigureData{};
    return FigureData{{label, {{point.x, std::move(*row)}}}};
  }
  auto experiment = LoadPoint(point, options);
  if (!experiment) return std::unexpected(experiment.error());
  if (question == Question::kRun) {
    row = RunPoint(*experiment, options);
  } else if (question == Question::kPeak) {
    row = PeakPoint(*experiment, options);
  } else if (question == Question::kLeastLanes) {
    row = LeastLanesPoint(*experiment, options);
  } else if (question == Question::kDistributions) {
    return Distributions(label, *experiment, point, options);
  } else if (question == Question::kMinutes) {
    return Minutes(label, *experiment, options);
  } else {
    return Closely(question, label, *experiment, options);
  }
  if (!row) return std::unexpected(row.error());
  if (point.paper) (*row)["paper"] = *point.paper;
  return FigureData{{label, {{point.x, std::move(*row)}}}};
}

}  // namespace tactus
