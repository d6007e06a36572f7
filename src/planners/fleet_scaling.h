// OctopInf's AutoScaler on the plans of one planner, as whoever runs them has it between two plans:
// the simulated fleet, and the leader of a cluster.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fleet_plan.h"
#include "planners/octopinf/autoscaler.h"

namespace tactus {

// Whether plans of this planner are scaled between two: the AutoScaler belongs to OctopInf.
bool IsScaled(std::string_view planner);

class FleetScaling {
 public:
  // `planner`: the one whose plans are scaled.
  explicit FleetScaling(std::string_view planner, AutoScalerOptions options = {});

  // A step at `now`, which does not fall: changes `plan`, which this planner made for these
  // devices and pipelines. `input` has the rates as they are now. Where its pipelines are others
  // than at the step before, nothing is known of earlier changes.
  std::vector<AutoScaler::Change> Step(const FleetInput& input, FleetPlan& plan, TimePoint now);

 private:
  const bool windows_;
  const AutoScalerOptions options_;
  AutoScaler scaler_;
  std::vector<std::string> pipelines_;  // of the last step
};

// For people, of changes that Step has made to `plan`: "street/read 2 -> 3 instances (busy 0.93)";
// at most `most` stages, then how many more. Empty where nothing was added or given back.
std::string TextOf(const std::vector<AutoScaler::Change>& changes, const FleetInput& input,
                   const FleetPlan& plan, int most = 8);

// A step between two plans as a leader has it (LeaderOptions::scaling): changes the plan and says
// what it has changed; empty: nothing. Null for a planner whose plans are not scaled.
using PlanScaling = std::function<std::string(const FleetInput&, FleetPlan&, TimePoint now)>;
PlanScaling ScalingOf(std::string_view planner, AutoScalerOptions options = {});

}  // namespace tactus
