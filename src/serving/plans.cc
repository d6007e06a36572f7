#include "serving/plans.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include "base/check.h"
#include "planners/registry.h"
#include "policies/policy_options.h"
#include "profiling/machine.h"
#include "workload/plan_file.h"

namespace tactus {
namespace {

// Of the whole machine, in MB.
double MachineMemory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) /
         1e6;
}

// Of what the engine runs on, in MB.
double MemoryFor(const EngineTraits& engine) {
  return engine.device ? static_cast<double>(engine.device->memory_bytes) / 1e6 : MachineMemory();
}

// That the share was measured here, on as much of the device as it is.
Status CheckShare(const ShareProfile& each, const SplitOptions& split, const EngineTraits& engine,
                  bool allow) {
  if (split.on_device) {
    const Status here = CheckMachine(each.profile, ThisMachine(engine, 1, each.share), allow);
    if (here) return here;
    return InvalidArgument(
        fmt::format("--on-share {:g}: {}", 100 * each.share, here.error().message));
  }
  const int threads = static_cast<int>(std::lround(each.share * split.cores));
  const Status here = CheckMachine(each.profile, ThisMachine(engine, threads), allow);
  if (here) return here;
  return InvalidArgument(fmt::format("--on-share {:g}: {} % of {} cores is a lane of {}: {}",
                                     100 * each.share, 100 * each.share, split.cores, threads,
                                     here.error().message));
}

std::vector<double> SharesOf(const SplitOptions& split) {
  std::vector<double> shares;
  for (const ShareProfile& each : split.shares) shares.push_back(each.share);
  return shares;
}

// The option that there are lanes of a plan for.
const char* Option(const ServeOptions& options) {
  return options.planner.empty() ? "--plan" : "--planner";
}

std::string_view NameOf(const std::string& planner) {
  return std::string_view(planner).substr(0, planner.find(':'));
}

Expected<ReplannerOptions> ReadPlannerOptions(const std::string& planner) {
  const std::size_t colon = planner.find(':');
  auto given =
      PolicyOptions::Parse(colon == std::string::npos ? "" : planner.substr(colon + 1), "planner");
  if (!given) return Fail(given.error().code, "--planner: " + given.error().message);
  ReplannerOptions options;
  options.period = FromSeconds(given->Number("period", ToSeconds(options.period), 1, 86'400));
  options.weight = given->Number("weight", options.weight, 0.01, 1);
  options.headroom = given->Number("headroom", options.headroom, 0, 10);
  given->Renamed("late", "bad_threshold");
  options.bad_threshold = given->Number("bad_threshold", options.bad_threshold, 0, 1);
  options.least_rps = given->Number("least", 0.1, 0, 1e6);
  if (!given->status()) {
    return Fail(given->status().error().code, "--planner: " + given->status().error().message);
  }
  if (!given->empty()) {
    return InvalidArgument(fmt::format(
        "--planner: there is no option '{}'; there are period, weight, headroom, bad_threshold, "
        "least",
        given->first_left()));
  }
  return options;
}

}  // namespace

bool SplitsDevice(const ServeOptions& options) {
  return !options.plan.empty() || !options.planner.empty();
}

Status CheckPlanOptions(const ServeOptions& options) {
  if (!SplitsDevice(options)) {
    const char* const alone = !options.on_share.empty()      ? "--on-share"
                              : options.device_memory_mb > 0 ? "--device-memory-mb"
                                                             : nullptr;
    if (alone == nullptr) return {};
    return InvalidArgument(fmt::format(
        "{}: nothing splits the device into shares; add --planner gpulet-retry, or --plan", alone));
  }
  const char* const option = Option(options);
  if (!options.policy.starts_with("planned")) {
    return InvalidArgument(fmt::format("{} requires --policy planned", option));
  }
  if (!options.planner.empty()) {
    const auto planner = MakePlanner(NameOf(options.planner), std::nullopt);
    if (!planner) return Fail(planner.error().code, "--planner: " + planner.error().message);
    const auto known = ReadPlannerOptions(options.planner);
    if (!known) return std::unexpected(known.error());
  }
  if (options.on_share.empty()) {
    return InvalidArgument(fmt::format(
        "{}: give the latencies on the shares of the device: --on-share 50=half.json "
        "100=whole.json, measured by `tactus profile --threads`, or on a device --share",
        option));
  }
  return {};
}

Expected<SplitOptions> ReadSplit(const ServeOptions& options, const EngineTraits& engine) {
  const auto refused = [](const Error& why) {
    return Fail(why.code, "--on-share: " + why.message);
  };
  const auto measured = ParseMeasuredShares(options.on_share);
  if (!measured) return refused(measured.error());
  auto loaded = LoadShareProfiles(*measured);
  if (!loaded) return refused(loaded.error());
  SplitOptions split;
  split.shares = *std::move(loaded);
  split.on_device = engine.device.has_value();
  split.cores = split.on_device ? 1 : split.shares.back().profile.machine.threads;
  split.memory_mb = options.device_memory_mb > 0 ? options.device_memory_mb : MemoryFor(engine);
  for (const ShareProfile& each : split.shares) {
    if (Status here = CheckShare(each, split, engine, options.allow_other_machine); !here) {
      return std::unexpected(here.error());
    }
  }
  if (options.planner.empty()) return split;
  const auto planner = MakePlanner(NameOf(options.planner), std::nullopt);
  CHECK(planner, "CheckPlanOptions refuses the others");
  if (const Status suits = (*planner)->Suits(SharesOf(split)); !suits) {
    return Fail(suits.error().code, "--planner: " + suits.error().message);
  }
  return split;
}

Status TakePlan(const std::string& path, Runtime& runtime, const Log& log) {
  const auto file = LoadPlan(path);
  if (!file) return std::unexpected(file.error());
  const auto question = runtime.CurrentPlanQuestion();
  if (!question) return std::unexpected(question.error());
  const auto plan = FitPlan(*file, path, question->input);
  if (!plan) return std::unexpected(plan.error());
  if (const auto other = ExplainPlanMismatch(*file, question->input, KnownRates::kNo)) {
    log->warn("{}: {}", path, *other);
  }
  return runtime.Adopt(*plan, NamesOf(question->input));
}

std::unique_ptr<RepeatedTask> TakePlanWhenWoken(std::string path, Runtime& runtime, Log log) {
  const auto take = [path = std::move(path), &runtime, log = std::move(log)] {
    const Status taken = TakePlan(path, runtime, log);
    taken ? log->info("SIGHUP: the device is now split as {} says", path)
          : log->error("SIGHUP: nothing changes: {}", taken.error().message);
    return RepeatedTask::kUntilWoken;
  };
  return std::make_unique<RepeatedTask>("plan", take, RepeatedTask::kUntilWoken);
}

Expected<std::unique_ptr<PlanningThread>> MakePlanning(const ServeOptions& options,
                                                       Runtime& runtime,
                                                       PlanningThread::Options parts) {
  auto planner = MakePlanner(NameOf(options.planner), std::nullopt);
  if (!planner) return Fail(planner.error().code, "--planner: " + planner.error().message);
  auto replanner = ReadPlannerOptions(options.planner);
  if (!replanner) return std::unexpected(std::move(replanner.error()));
  parts.replanner = *replanner;
  if (!options.plan.empty()) {
    const auto file = LoadPlan(options.plan);
    if (!file) return std::unexpected(file.error());
    for (const PlanFile::PlannedFor& model : file->models) {
      parts.declared_rps[model.name] = model.rate_rps;
    }
  }
  return std::make_unique<PlanningThread>(runtime, *std::move(planner), std::move(parts));
}

std::string SplitText(const ServeOptions& options) {
  if (options.planner.empty()) return fmt::format("as {} says", options.plan);
  const std::string by = fmt::format("by {} as the load changes", NameOf(options.planner));
  return options.plan.empty() ? by : fmt::format("at first as {} says, then {}", options.plan, by);
}

}  // namespace tactus
