#include "planners/fleet_spread.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

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
  for (FleetPipelineId::rep i = 0; i < placement.size(); ++i) {
    const FleetPipelineId p{i};
    for (FleetStageId::rep k = 0; k < placement[i].size(); ++k) {
      const FleetStageId s{k};
      const StagePlacement& at = placement[i][k];
      const double each_rps = input.RateOf(p, s) / at.instances;
      double missing_rps = 0;
      bool missing = false;
      for (int n = 0; n < at.instances; ++n) {
        FleetInstance instance{.pipeline = p, .stage = s, .device = at.device, .batch = at.batch};
        if (spread.Put(instance, each_rps)) {
          plan.instances.push_back(instance);
        } else {
          missing_rps += each_rps;
          missing = true;
        }
      }
      if (!missing) continue;
      plan.short_of.push_back({p, s, missing_rps,
                               fmt::format("{} has not the memory for all instances",
                                           input.devices[at.device.value()].name)});
    }
    plan.latency.push_back(WorstLatency(input, p, placement[i], links));
  }
  return plan;
}

}  // namespace tactus
