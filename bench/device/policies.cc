// Policies on the device, behind the whole server: Strait on streams with priorities, deferred
// batches where batches pay.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "device/parts.h"
#include "program.h"

namespace tactus {
namespace {

// Serves the mix, prints the run and adds it to the report.
Expected<RunReport> ServeOnce(const Bench& bench, const Mix& mix, const ProfileFile& profile,
                              double load, double rate_rps, const std::string& policy) {
  const auto experiment = MakeExperiment(mix, profile, rate_rps, policy, bench.options);
  if (!experiment) return std::unexpected(experiment.error());
  auto run = Serve(bench.device, *experiment);
  if (!run) return std::unexpected(run.error());
  run->report.settings["load"] = fmt::format("{:g}", load);
  PrintRun(bench.device, run->report, load);
  bench.report.runs.push_back(run->report);
  return std::move(run->report);
}

constexpr const char* kDefault = "horizon";  // of `tactus serve`

double BadOf(const RunReport& run, int priority) {
  for (const PrioritySummary& each : run.priorities) {
    if (each.priority == priority) return each.figures.bad_ratio;
  }
  return run.all.bad_ratio;  // all models share one
}

// The workloads of Strait's Figure 5: each net twice, two of high priority and four of low, like
// scenarios/strait. Tight SLOs for the first, as there: so many times what the net's largest batch
// takes.
std::vector<Mix> StraitMixes(const ProfileFile& profile) {
  struct Task {
    const char* net;
    int priority;
    double slack;
  };
  constexpr std::array<Task, 6> kTasks = {{{"quick", 1, 2.5},
                                           {"thin", 1, 2.5},
                                           {"wide", 2, 4},
                                           {"stream", 2, 6},
                                           {"tiny", 2, 10},
                                           {"cached", 2, 6}}};
  struct Workload {
    const char* name;
    double high;
    double low;
    const char* arrivals;
  };
  constexpr std::array<Workload, 4> kWorkloads = {{{"strait-high", 3, 1, "poisson"},
                                                   {"strait-low", 1, 2, "poisson"},
                                                   {"strait-balanced", 1, 1, "poisson"},
                                                   {"strait-uniform", 1, 1, "uniform"}}};
  std::vector<Mix> mixes;
  for (const Workload& workload : kWorkloads) {
    // Policies count on the median, and Strait learns from there what neighbours cost.
    Mix mix{.name = workload.name, .slots = 4, .arrivals = workload.arrivals, .percentile = 50};
    for (const Task& task : kTasks) {
      const Duration slo = Times(task.slack, LargestBatch(profile, task.net));
      const double ratio = task.priority == 1 ? workload.high : workload.low;
      for (const int copy : {1, 2}) {
        mix.nets.push_back(
            {fmt::format("{}.{}", task.net, copy), task.net, slo, ratio, task.priority});
      }
    }
    mixes.push_back(std::move(mix));
  }
  return mixes;
}

Status JudgeStrait(const Bench& bench, const std::string& workload,
                   const std::map<std::string, RunReport>& runs) {
  const RunReport& strait = runs.at("strait");
  double high = 1;
  double low = 1;
  for (const auto& [policy, run] : runs) {
    if (policy == "strait" || policy == kDefault) continue;
    high = std::min(high, BadOf(run, 1));
    low = std::min(low, BadOf(run, 2));
  }
  bench.Add(AtMost(
      fmt::format("{}: violations of high priority, Strait's less the best rival's", workload),
      BadOf(strait, 1) - high, 0));
  bench.Add(AtMost(fmt::format("{}: violations of low priority, likewise (paper 0.61 points more "
                               "at worst)",
                               workload),
                   BadOf(strait, 2) - low, 0.01));
  bench.Add(Reported(fmt::format("{}: violations of high priority, {}'s less the best rival's",
                                 workload, kDefault),
                     BadOf(runs.at(kDefault), 1) - high));
  bench.Add(Reported(fmt::format("{}: violations of low priority, likewise", workload),
                     BadOf(runs.at(kDefault), 2) - low));
  if (strait.prediction) {
    bench.Add(Reported(fmt::format("{}: P95 error of Strait's predictions", workload),
                       strait.prediction->p95));
  }
  return {};
}

}  // namespace

Status MeasureStrait(const Bench& bench) {
  auto profile = ProfileNets(bench.device, {"quick", "thin", "wide", "stream", "tiny", "cached"},
                             bench.options);
  if (!profile) return std::unexpected(profile.error());
  const auto peaks = PeaksOf(bench.device);
  if (!peaks) return std::unexpected(peaks.error());
  AddUses(*peaks, bench.device.facts, *profile);
  constexpr double kLoad = 1.1;  // of what one batch at a time sustains
  std::vector<Mix> mixes = StraitMixes(*profile);
  if (bench.options.quick) mixes.resize(1);
  for (const Mix& mix : mixes) {
    std::map<std::string, RunReport> runs;
    for (const char* policy :
         {"strait", "static-spatial", "reactive-spatial", "temporal", kDefault}) {
      auto run = ServeOnce(bench, mix, *profile, kLoad, kLoad * CapacityOf(mix, *profile), policy);
      if (!run) return std::unexpected(run.error());
      runs.emplace(policy, *std::move(run));
    }
    if (Status judged = JudgeStrait(bench, mix.name, runs); !judged) return judged;
  }
  return {};
}

Status MeasureDeferred(const Bench& bench) {
  const auto profile = ProfileNets(bench.device, {"weights"}, bench.options);
  if (!profile) return std::unexpected(profile.error());
  const auto& cells = profile->Find("weights")->exits.back().cells;
  fmt::print("  a batch of 1 takes {:.3f} ms, one of {} {:.3f} ms\n", cells.front().p50_ms,
             cells.size(), cells.back().p50_ms);
  constexpr const char* kDeferred = "symphony:published";
  constexpr const char* kEager = "symphony:when=eager,gather=prefix";
  constexpr const char* kOurs[] = {"symphony", "horizon"};  // that keep a reserve for the way back
  // Three tenants of one net, as `./run bench deferred` has on a processor.
  Mix mix{.name = "deferred", .expiry = "passed", .percentile = 99};
  // A deferred batch starts with nothing to spare; this is for the way to the device and back.
  mix.jitter = Millis(1);
  const Duration slo = std::max<Duration>(Millis(10), Times(5, LargestBatch(*profile, "weights")));
  for (const char* tenant : {"a", "b", "c"}) mix.nets.push_back({tenant, "weights", slo});
  std::vector<double> loads = {0.05, 0.15, 0.4};
  if (bench.options.quick) loads.resize(1);
  const double capacity = CapacityOf(mix, *profile);
  for (const double load : loads) {
    const auto deferred = ServeOnce(bench, mix, *profile, load, load * capacity, kDeferred);
    if (!deferred) return std::unexpected(deferred.error());
    const auto eager = ServeOnce(bench, mix, *profile, load, load * capacity, kEager);
    if (!eager) return std::unexpected(eager.error());
    const auto lane_time = [](const RunReport& run) {
      return run.all.goodput_rps > 0 ? BusyRatio(run) / run.all.goodput_rps : 0;
    };
    bench.Add(AtMost(fmt::format("deferred at {:g} % load: violation ratio", 100 * load),
                     deferred->all.bad_ratio, 0.01));
    bench.Add(AtMost(
        fmt::format("deferred at {:g} % load: device time of a request over eager", 100 * load),
        lane_time(*eager) > 0 ? lane_time(*deferred) / lane_time(*eager) : 1,
        load == loads[0] ? 0.67 : 1));
    for (const char* policy : kOurs) {
      const auto ours = ServeOnce(bench, mix, *profile, load, load * capacity, policy);
      if (!ours) return std::unexpected(ours.error());
      bench.Add(AtMost(fmt::format("{} at {:g} % load: violation ratio", policy, 100 * load),
                       ours->all.bad_ratio, 0.01));
      bench.Add(Reported(
          fmt::format("{} at {:g} % load: device time of a request over eager", policy, 100 * load),
          lane_time(*eager) > 0 ? lane_time(*ours) / lane_time(*eager) : 1));
    }
  }
  return {};
}

}  // namespace tactus
