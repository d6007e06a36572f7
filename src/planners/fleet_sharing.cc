#include "planners/fleet_sharing.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tactus {
namespace {

const FleetStage& StageAt(const FleetInput& input, FleetStageRef ref) {
  return input.pipelines[ref.pipeline.value()].stages[ref.stage.value()];
}
const StagePlacement& PlaceOf(const FleetPlacement& placement, FleetStageRef ref) {
  return placement[ref.pipeline.value()][ref.stage.value()];
}

template <class Each>
void EachPlaced(const FleetPlacement& placement, Each each) {
  for (FleetPipelineId::rep p = 0; p < placement.size(); ++p) {
    for (FleetStageId::rep s = 0; s < placement[p].size(); ++s) {
      each(FleetStageRef{FleetPipelineId{p}, FleetStageId{s}});
    }
  }
}

class Sharing {
 public:
  Sharing(const FleetInput& input, PlacedFleet& placed) : input_(input), placed_(placed) {
    std::map<std::pair<DeviceId, ModelId>, Group> groups;
    EachPlaced(placed.placement, [&](FleetStageRef ref) {
      const DeviceId device = PlaceOf(placed.placement, ref).device;
      if (!input.devices[device.value()].server) return;
      Group& group = groups[{device, StageAt(input, ref).model}];
      group.stages.push_back(ref);
      group.rate_rps += input.RateOf(ref.pipeline, ref.stage);
      group.cv = std::max(group.cv, CoefficientOf(StageAt(input, ref)));
    });
    for (auto& [at, group] : groups) {
      group.device = at.first;
      group.model = at.second;
      groups_.push_back(std::move(group));
    }
    std::ranges::stable_sort(groups_, std::greater{}, &Group::cv);
  }

  void Run(SharedBatches batches) {
    for (const Group& group : groups_) {
      const bool search = batches == SharedBatches::kSearched;
      Set(group, search ? input_.CostOf(group.model, KindOf(group))->batches.front()
                        : SmallestPlaced(group));
    }
    if (batches == SharedBatches::kAsPlaced) return;
    FindLimits();
    for (bool grown = true; grown;) {
      grown = false;
      for (const Group& group : groups_) grown |= Grow(group);
    }
  }

 private:
  struct Group {
    DeviceId device;
    ModelId model;
    std::vector<FleetStageRef> stages;
    double rate_rps = 0;
    double cv = 0;
  };

  KindId KindOf(const Group& group) const { return input_.devices[group.device.value()].kind; }

  const FleetBatch& SmallestPlaced(const Group& group) const {
    int batch = PlaceOf(placed_.placement, group.stages.front()).batch;
    for (const FleetStageRef ref : group.stages) {
      batch = std::min(batch, PlaceOf(placed_.placement, ref).batch);
    }
    return *BatchOf(input_, group.model, group.device, batch);
  }

  void Set(const Group& group, const FleetBatch& batch) {
    const StagePlacement made{.device = group.device,
                              .batch = batch.batch,
                              .instances = InstancesFor(group.rate_rps, batch),
                              .shared_rps = group.rate_rps};
    for (const FleetStageRef ref : group.stages) {
      placed_.placement[ref.pipeline.value()][ref.stage.value()] = made;
    }
  }

  Duration Latency(FleetPipelineId p) const {
    return WorstLatency(input_, p, placed_.placement[p.value()], placed_.links);
  }

  // By pipeline; kForever where it is late anyway.
  void FindLimits() {
    for (FleetPipelineId::rep i = 0; i < placed_.placement.size(); ++i) {
      const FleetPipelineId p{i};
      const FleetPipeline& pipeline = input_.pipelines[i];
      const auto& stages = placed_.placement[i];
      const bool at_source = std::ranges::any_of(
          stages, [&](const StagePlacement& at) { return at.device == pipeline.source; });
      const Duration limit = at_source ? pipeline.slo : pipeline.slo / 2;
      const bool meets = !stages.empty() && Latency(p) <= limit;
      limits_.push_back(meets ? limit : kForever);
    }
  }

  bool Grow(const Group& group) {
    const StagePlacement before = PlaceOf(placed_.placement, group.stages.front());
    const FleetBatch& now = *BatchOf(input_, group.model, group.device, before.batch);
    const FleetBatch* next = BatchOf(input_, group.model, group.device, 2 * before.batch);
    if (next == nullptr || BusyOf(1, *next) >= BusyOf(1, now)) return false;
    if (next->peak_mb > input_.devices[group.device.value()].memory_mb) return false;
    Set(group, *next);
    const bool in_time = std::ranges::all_of(group.stages, [&](FleetStageRef ref) {
      const Duration limit = limits_[ref.pipeline.value()];
      return limit == kForever || Latency(ref.pipeline) <= limit;
    });
    if (!in_time) Set(group, now);
    return in_time;
  }

  const FleetInput& input_;
  PlacedFleet& placed_;
  std::vector<Group> groups_;
  std::vector<Duration> limits_;
};

}  // namespace

void ShareServers(const FleetInput& input, SharedBatches batches, PlacedFleet& placed) {
  Sharing(input, placed).Run(batches);
}

std::vector<std::vector<FleetStageRef>> InstanceGroups(const FleetInput& input,
                                                       const FleetPlacement& placement) {
  std::vector<std::vector<FleetStageRef>> groups;
  std::map<std::pair<DeviceId, ModelId>, std::size_t> shared;
  EachPlaced(placement, [&](FleetStageRef ref) {
    const StagePlacement& at = PlaceOf(placement, ref);
    std::size_t place = groups.size();
    if (at.shared_rps > 0) {
      place = shared.try_emplace({at.device, StageAt(input, ref).model}, place).first->second;
    }
    if (place == groups.size()) groups.emplace_back();
    groups[place].push_back(ref);
  });
  const auto slo = [&](FleetStageRef ref) { return input.pipelines[ref.pipeline.value()].slo; };
  for (auto& group : groups) {
    const auto least = std::ranges::min_element(group, {}, slo);
    std::rotate(group.begin(), least, std::next(least));
  }
  std::ranges::sort(groups, {}, [](const auto& group) { return group.front(); });
  return groups;
}

}  // namespace tactus
