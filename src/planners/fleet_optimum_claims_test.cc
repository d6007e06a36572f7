// How near CWD's placements are to the best of all, found by trying every one, on fleets small
// enough for that.
#include <algorithm>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "planners/fleet_estimate.h"
#include "planners/fleet_testing.h"
#include "planners/octopinf/cwd.h"

namespace tactus {
namespace {

constexpr std::size_t kMostPipelines = 2;
constexpr std::size_t kMostStages = 2;

FleetInput SmallFleet(Rng& rng) {
  FleetInput input = RandomFleet(rng);
  if (input.pipelines.size() > kMostPipelines) input.pipelines.resize(kMostPipelines);
  for (FleetPipeline& pipeline : input.pipelines) {
    if (pipeline.stages.size() > kMostStages) pipeline.stages.resize(kMostStages);
  }
  return input;
}

// Results a second that the placement sustains in time, by the estimates that planners have: none
// of a pipeline whose worst case is later than its SLO; of the others the fraction that the devices
// of their stages have time for.
double Sustained(const FleetInput& input, const FleetPlacement& placement) {
  std::vector<double> busy(input.devices.size());
  LinkLoads links(input.links.size());
  for (FleetPipelineId::rep p = 0; p < placement.size(); ++p) {
    AddLinkLoads(input, FleetPipelineId{p}, placement[p], 1, links);
    for (FleetStageId::rep s = 0; s < placement[p].size(); ++s) {
      const StagePlacement& at = placement[p][s];
      const ModelId model = input.pipelines[p].stages[s].model;
      busy[at.device.value()] += BusyOf(input.RateOf(FleetPipelineId{p}, FleetStageId{s}),
                                        *BatchOf(input, model, at.device, at.batch));
    }
  }
  double sustained = 0;
  for (FleetPipelineId::rep p = 0; p < placement.size(); ++p) {
    const FleetPipelineId id{p};
    if (WorstLatency(input, id, placement[p], links) > input.pipelines[p].slo) continue;
    double part = 1;
    for (const StagePlacement& at : placement[p]) {
      const double has = input.devices[at.device.value()].accelerators;
      part = std::min(part, has / std::max(busy[at.device.value()], has));
    }
    const auto last = static_cast<FleetStageId::rep>(placement[p].size() - 1);
    sustained += part * input.RateOf(id, FleetStageId{last});
  }
  return sustained;
}

// Every device and batch of every stage, one after the other.
class EveryPlacement {
 public:
  explicit EveryPlacement(const FleetInput& input) : input_(input) {
    for (const FleetPipeline& pipeline : input.pipelines) {
      placement_.emplace_back(pipeline.stages.size());
    }
  }
  double Best() {
    Place(0, 0);
    return best_;
  }

 private:
  void Place(FleetPipelineId::rep p, FleetStageId::rep s) {
    if (p == placement_.size()) {
      best_ = std::max(best_, Sustained(input_, placement_));
      return;
    }
    if (s == placement_[p].size()) return Place(p + 1, 0);
    const FleetPipeline& pipeline = input_.pipelines[p];
    const double rate = input_.RateOf(FleetPipelineId{p}, FleetStageId{s});
    for (DeviceId::rep d = 0; d < input_.devices.size(); ++d) {
      if (DeviceId{d} != pipeline.source && !input_.devices[d].server) continue;
      const FleetCost* cost = input_.CostOf(pipeline.stages[s].model, input_.devices[d].kind);
      if (cost == nullptr) continue;
      for (const FleetBatch& batch : cost->batches) {
        placement_[p][s] = {DeviceId{d}, batch.batch, InstancesFor(rate, batch)};
        Place(p, s + 1);
      }
    }
  }

  const FleetInput& input_;
  FleetPlacement placement_;
  double best_ = 0;
};

TEST(FleetOptimum, CwdWithReliefSustainsNearlyWhatTheBestPlacementDoes) {
  constexpr std::uint64_t kSeed = 19;
  constexpr int kFleets = CasesHere(500);
  Rng rng = Rng::Stream(kSeed, "small fleets");
  double ours = 0, best = 0;
  int equal = 0;
  for (int i = 0; i < kFleets; ++i) {
    const FleetInput input = SmallFleet(rng);
    ASSERT_TRUE(CheckFleet(input)) << "seed " << kSeed << ", fleet " << i;
    const double most = EveryPlacement(input).Best();
    const double sustained =
        Sustained(input, DistributeWorkload(input, {.relieve = true, .windows = false}).placement);
    ASSERT_LE(sustained, most * (1 + 1e-9)) << "seed " << kSeed << ", fleet " << i;
    ours += sustained;
    best += most;
    equal += sustained >= most * (1 - 1e-9) ? 1 : 0;
  }
  std::cout << "of the best placements' results: " << ours / best << "; as good: " << equal
            << " of " << kFleets << "\n";
  EXPECT_GE(ours, 0.95 * best) << "seed " << kSeed;
}

}  // namespace
}  // namespace tactus
