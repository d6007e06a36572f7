// The planner of a simulated system: it watches the arrivals and makes a plan every epoch, in no
// time at all.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/plan.h"
#include "core/policy.h"
#include "dispatch/dispatcher.h"
#include "planners/nexus/squishy.h"
#include "workload/scenario.h"

namespace tactus {

struct SimulationOptions;

class Planning {
 public:
  // An error for a planner that there is not.
  static Status Known(std::string_view planner);
  // kInvalidArgument, with the arithmetic, for a model of which the planner can place no batch at
  // all: its plans would leave it out, and every request of it would be dropped. Also for lanes
  // that differ, which it does not know of.
  static Status Feasible(std::string_view planner, const ServedModels& served_models,
                         std::span<const LaneSpec> lanes);
  // Nothing for a policy that reads no plan, and where lanes are pinned to models, which the
  // planner does not know of: then the pins are the plan.
  static bool Pinned(std::span<const LaneSpec> lanes);
  static std::optional<Planning> For(std::string_view planner, const Scenario& scenario,
                                     const ServedModels& served_models);

  // From the rates that the scenario states.
  std::shared_ptr<const Plan> First();
  void Count(ModelId m) { ++counts_[m.value()]; }
  // From what was counted since the last plan, over `epoch`.
  std::shared_ptr<const Plan> Next(Duration epoch);

 private:
  Planning(const Scenario& scenario, const ServedModels& served_models);

  int lanes_;
  std::uint64_t epochs_ = 0;
  std::vector<NexusSession> sessions_;  // by ModelId
  std::vector<std::int64_t> counts_;
};

// Whether the policy can be had where the scenario and the options say who plans for it.
Status CheckPlanning(const Scenario& scenario, const ServedModels& served_models,
                     std::span<const LaneSpec> lanes, const Policy& policy,
                     const SimulationOptions& options);

}  // namespace tactus
