#include "planners/fleet_spread.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planners/fleet_sharing.h"

namespace tactus {
namespace {

struct Accelerator {
  double busy = 0;
  double memory_mb = 0;
  std::set<ModelId> models;
  int instances = 0;
};

class Spread {
 public:
  explicit Spread(const FleetInput& input) : input_(input) {
    for (const FleetDevice& device : input.devices) {
      devices_.emplace_back(static_cast<std::size_t>(device.accelerators));
    }
  }

  bool Put(FleetInstance& each, double rate_rps) {
    const FleetDevice& device = input_.devices[each.device.value()];
    const FleetPipeline& pipeline = input_.pipelines[each.pipeline.value()];
    const ModelId model = pipeline.stages[each.stage.value()].model;
    const FleetBatch& batch = *BatchOf(input_, model, each.device, each.batch);
    const double weights = input_.CostOf(model, device.kind)->weights_mb;
    Accelerator* best = nullptr;
    for (Accelerator& accelerator : devices_[each.device.value()]) {
      const double memory = accelerator.memory_mb + batch.peak_mb +
                            (accelerator.models.contains(model) ? 0 : weights);
      if (memory > device.memory_mb) continue;
      if (best == nullptr || accelerator.busy < best->busy) best = &accelerator;
    }
    if (best == nullptr) return false;
    each.accelerator = static_cast<int>(best - devices_[each.device.value()].data());
    each.stream = best->instances++ % device.streams;
    each.cycle = pipeline.slo / 2;
    best->busy += BusyOf(rate_rps, batch);
    best->memory_mb += batch.peak_mb + (best->models.insert(model).second ? weights : 0);
    return true;
  }

 private:
  const FleetInput& input_;
  std::vector<std::vector<Accelerator>> devices_;
};

}  // namespace

FleetPlan SpreadInstances(const FleetInput& input, const FleetPlacement& placement,
                          const LinkLoads& links) {
  FleetPlan plan{.epoch = 1};
  Spread spread(input);
  for (const auto& group : InstanceGroups(input, placement)) {
    const auto [p, s] = group.front();
    const StagePlacement& at = placement[p.value()][s.value()];
    const ModelId model = input.pipelines[p.value()].stages[s.value()].model;
    const double rate_rps = at.shared_rps > 0 ? at.shared_rps : input.RateOf(p, s);
    const double each_rps = rate_rps / at.instances;
    const std::string& device = input.devices[at.device.value()].name;
    int placed = 0;
    for (int n = 0; n < at.instances; ++n) {
      FleetInstance instance{.pipeline = p, .stage = s, .device = at.device, .batch = at.batch};
      instance.also.assign(group.begin() + 1, group.end());
      if (!spread.Put(instance, each_rps)) continue;
      plan.instances.push_back(instance);
      ++placed;
    }
    const double left = LeftByMost(rate_rps, *BatchOf(input, model, at.device, at.batch), placed);
    const std::string why = placed < at.instances
                                ? fmt::format("{} has not the memory for all instances", device)
                                : fmt::format("a stage has {} instances at most", kMostInstances);
    if (placed == at.instances && left == 0) continue;
    const double part = (left + each_rps * (at.instances - placed)) / std::max(rate_rps, 1e-12);
    for (const auto& [pipeline, stage] : group) {
      const double of_stage = rate_rps > 0 ? part * input.RateOf(pipeline, stage) : 0;
      plan.short_of.push_back({pipeline, stage, of_stage, why});
    }
  }
  plan.routes = RoutesOf(plan.instances);
  for (FleetPipelineId::rep p = 0; p < placement.size(); ++p) {
    plan.latency.push_back(WorstLatency(input, FleetPipelineId{p}, placement[p], links));
  }
  return plan;
}

}  // namespace tactus
