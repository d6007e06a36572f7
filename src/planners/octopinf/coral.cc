#include "planners/octopinf/coral.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "planners/fleet_sharing.h"

namespace tactus {
namespace {

// The latest end of the windows of the stages before it on the same device: then its input is
// there.
Duration InputThere(const FleetInput& input, FleetPipelineId p, FleetStageId s, DeviceId device,
                    std::span<const FleetInstance> placed) {
  const FleetStage& stage = input.pipelines[p.value()].stages[s.value()];
  Duration latest{};
  for (const FleetInstance& each : placed) {
    const bool before =
        each.pipeline == p && std::ranges::find(stage.after, each.stage) != stage.after.end();
    if (before && each.device == device) latest = std::max(latest, each.offset + each.length);
  }
  return latest;
}

// The stages that the same instances run, and how many of these: one runs once in a cycle, so that
// the instances that CWD counts, which run all the time, would not sustain the load.
struct WantedWindows {
  std::vector<FleetStageRef> stages;
  StagePlacement at;
  FleetBatch batch;
  int windows = 1;
  double rate_rps = 0;
};
std::vector<WantedWindows> WindowsOf(const FleetInput& input, const FleetPlacement& placement) {
  std::vector<WantedWindows> wanted;
  for (auto& group : InstanceGroups(input, placement)) {
    const auto [p, s] = group.front();
    const FleetPipeline& pipeline = input.pipelines[p.value()];
    WantedWindows each{.at = placement[p.value()][s.value()]};
    each.batch = *BatchOf(input, pipeline.stages[s.value()].model, each.at.device, each.at.batch);
    each.rate_rps = each.at.shared_rps > 0 ? each.at.shared_rps : input.RateOf(p, s);
    each.windows =
        std::max(each.at.instances, WindowsFor(each.rate_rps, each.batch, pipeline.slo / 2));
    each.stages = std::move(group);
    wanted.push_back(std::move(each));
  }
  return wanted;
}

std::string Because(const FleetInput& input, const StagePlacement& at, const FleetBatch& batch,
                    NoWindow why) {
  const std::string& name = input.devices[at.device.value()].name;
  switch (why) {
    case NoWindow::kMemory:
      return fmt::format("{} has not the memory for another instance", name);
    case NoWindow::kUse:
      return fmt::format("{}'s accelerators would be used beyond their most", name);
    case NoWindow::kTime:
      break;
  }
  return fmt::format("no stream of {} has {:.3g} ms free in a cycle", name,
                     ToMillis(batch.total()));
}

}  // namespace

ScheduledInstance ScheduleOne(const FleetInput& input, FleetPipelineId p, FleetStageId s,
                              const StagePlacement& at, std::span<const FleetInstance> placed,
                              StreamTable& table) {
  ScheduledInstance made;
  made.instance = {.pipeline = p, .stage = s, .device = at.device, .batch = at.batch};
  const Duration earliest = InputThere(input, p, s, at.device, placed);
  made.window = table.Place(made.instance, earliest, made.why);
  made.placed = made.window || table.PlaceOpen(made.instance);
  return made;
}

FleetPlan ScheduleWindows(const FleetInput& input, const FleetPlacement& placement,
                          const LinkLoads& links) {
  FleetPlan plan{.epoch = 1};
  StreamTable table(input);
  std::vector<std::vector<FleetInstance>> placed(input.pipelines.size());
  std::map<FleetStageRef, FleetShortage> missing;
  const auto lacks = [&](const WantedWindows& each, double part, const std::string& why) {
    for (const FleetStageRef& ref : each.stages) {
      FleetShortage& shortage = missing[ref];
      shortage.pipeline = ref.pipeline;
      shortage.stage = ref.stage;
      shortage.missing_rps += input.RateOf(ref.pipeline, ref.stage) * part;
      shortage.why = why;
    }
  };
  const std::vector<WantedWindows> wanted = WindowsOf(input, placement);
  int rounds = 0;
  for (const WantedWindows& each : wanted) rounds = std::max(rounds, each.windows);
  for (int round = 0; round < rounds; ++round) {
    for (const WantedWindows& each : wanted) {
      if (round >= each.windows) continue;
      const auto [p, s] = each.stages.front();
      ScheduledInstance made = ScheduleOne(input, p, s, each.at, placed[p.value()], table);
      made.instance.also.assign(each.stages.begin() + 1, each.stages.end());
      if (made.placed) placed[p.value()].push_back(made.instance);
      if (made.window) continue;
      lacks(each, 1.0 / each.windows, Because(input, each.at, each.batch, made.why));
    }
  }
  for (const WantedWindows& each : wanted) {
    const double left = LeftByMost(each.rate_rps, each.batch, each.windows);
    if (left <= 0) continue;
    lacks(each, left / each.rate_rps,
          fmt::format("a stage has {} instances at most", kMostInstances));
  }
  for (auto& instances : placed) {
    std::ranges::stable_sort(instances, {}, &FleetInstance::stage);
    plan.instances.insert(plan.instances.end(), instances.begin(), instances.end());
  }
  plan.routes = RoutesOf(plan.instances);
  for (const auto& [at, shortage] : missing) plan.short_of.push_back(shortage);
  for (FleetPipelineId::rep p = 0; p < placement.size(); ++p) {
    plan.latency.push_back(WorstLatency(input, FleetPipelineId{p}, placement[p], links));
  }
  return plan;
}

}  // namespace tactus
