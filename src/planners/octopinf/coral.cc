#include "planners/octopinf/coral.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace tactus {
namespace {

// The latest end of the windows of the stages before it on the same device: then its input is
// there.
Duration InputThere(const FleetInput& input, FleetPipelineId p, FleetStageId s, DeviceId device,
                    const std::vector<FleetInstance>& placed) {
  const FleetStage& stage = input.pipelines[p.value()].stages[s.value()];
  Duration latest{};
  for (const FleetInstance& each : placed) {
    const bool before =
        each.pipeline == p && std::ranges::find(stage.after, each.stage) != stage.after.end();
    if (before && each.device == device) latest = std::max(latest, each.offset + each.length);
  }
  return latest;
}

// How many of each stage: one runs once in a cycle, so that the instances that CWD counts, which
// run all the time, would not carry the load.
std::vector<std::vector<int>> WindowsOf(const FleetInput& input, const FleetPlacement& placement) {
  std::vector<std::vector<int>> windows(placement.size());
  for (FleetPipelineId::rep i = 0; i < placement.size(); ++i) {
    const FleetPipeline& pipeline = input.pipelines[i];
    for (FleetStageId::rep k = 0; k < placement[i].size(); ++k) {
      const StagePlacement& at = placement[i][k];
      const FleetBatch& batch = *BatchOf(input, pipeline.stages[k].model, at.device, at.batch);
      const double rate = input.RateOf(FleetPipelineId{i}, FleetStageId{k});
      windows[i].push_back(std::max(at.instances, WindowsFor(rate, batch, pipeline.slo / 2)));
    }
  }
  return windows;
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
                              const StagePlacement& at, const std::vector<FleetInstance>& placed,
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
  std::map<std::pair<FleetPipelineId, FleetStageId>, FleetShortage> missing;
  const auto wanted = WindowsOf(input, placement);
  int rounds = 0;
  for (const auto& stages : wanted) {
    for (const int windows : stages) rounds = std::max(rounds, windows);
  }
  for (int round = 0; round < rounds; ++round) {
    for (FleetPipelineId::rep i = 0; i < placement.size(); ++i) {
      const FleetPipelineId p{i};
      for (FleetStageId::rep k = 0; k < placement[i].size(); ++k) {
        const FleetStageId s{k};
        const StagePlacement& at = placement[i][k];
        if (round >= wanted[i][k]) continue;
        const ScheduledInstance made = ScheduleOne(input, p, s, at, placed[i], table);
        if (made.placed) placed[i].push_back(made.instance);
        if (made.window) continue;
        const ModelId model = input.pipelines[i].stages[k].model;
        FleetShortage& shortage = missing[{p, s}];
        shortage.pipeline = p;
        shortage.stage = s;
        shortage.missing_rps += input.RateOf(p, s) / wanted[i][k];
        shortage.why = Because(input, at, *BatchOf(input, model, at.device, at.batch), made.why);
      }
    }
  }
  for (auto& instances : placed) {
    std::ranges::stable_sort(instances, {}, &FleetInstance::stage);
    plan.instances.insert(plan.instances.end(), instances.begin(), instances.end());
  }
  for (const auto& [at, shortage] : missing) plan.short_of.push_back(shortage);
  for (FleetPipelineId::rep p = 0; p < placement.size(); ++p) {
    plan.latency.push_back(WorstLatency(input, FleetPipelineId{p}, placement[p], links));
  }
  return plan;
}

}  // namespace tactus
