// The upper bound of every planner here: whether any split of the devices, any placement of the
// models and any division of their rates sustains the load (gpu-lets, Section 6.2, "ideal"). Exact,
// and exponential in the models: for a handful.
//
// A lane's choice is a batch of each model; its cycle is their time, its rates batch over cycle. Of
// all choices of a device, split or whole, those remain that no other one beats for every model.
// The search then takes one for each device. It is cut by prices: under any prices, the dearest
// device brings at least its part of what is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planners/gpulet/front.h"
#include "planners/gpulet/interference.h"

namespace tactus {

struct IdealOptions {
  // As ElasticOptions::interference: then a lane's latencies depend on who is in the other one.
  const InterferenceModel* interference = nullptr;
  // Devices' choices that a search may look at before it gives up.
  std::int64_t most_steps = 2'000'000'000;
  // Called now and then while the choices are made: how many of how many steps are done.
  std::function<void(std::size_t done, std::size_t all)> on_progress;
};

class IdealPlanner {
 public:
  static constexpr std::size_t kMostModels = kFrontDimensions;

  // Makes the choices for loads of up to the rates in `input`, which outlives the planner; what
  // the options point to need not.
  // kInvalidArgument for more than kMostModels models, and what CheckPlannable says.
  static Expected<IdealPlanner> Make(const PlanInput& input, const IdealOptions& options);

  // A plan for these rates, by model. kResourceExhausted: none exists. kDeadlineExceeded: the
  // search gave up, and nobody knows.
  Expected<Plan> Solve(std::span<const double> rates_rps) const;

  std::size_t choices() const { return choices_.size(); }

 private:
  // What a lane runs in a cycle, by model; batch 0: not this one.
  struct LaneChoice {
    LaneClass lane_class;
    std::array<int, kMostModels> batches{};
    std::array<Duration, kMostModels> time{};  // of each batch, with its slowdown
    Duration cycle{};
  };
  struct DeviceChoice {
    FrontPoint rates{};             // by model, no more than is asked for
    std::vector<LaneChoice> lanes;  // one or two
  };
  class Maker;
  class Search;

  IdealPlanner(const PlanInput& input, std::int64_t most_steps)
      : input_(&input), most_steps_(most_steps) {}

  const PlanInput* input_;
  std::int64_t most_steps_;
  std::vector<DeviceChoice> choices_;
  Front front_;  // of them
};

}  // namespace tactus
