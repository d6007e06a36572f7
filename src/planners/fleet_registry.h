// Planners of fleets by name: OctopInf, its ablations, and its rivals.
#pragma once

#include <span>
#include <string_view>

#include "core/fleet_plan.h"

namespace tactus {

struct FleetPlannerInfo {
  std::string_view name;
  std::string_view summary;
};
std::span<const FleetPlannerInfo> FleetPlanners();
// kNotFound, with the names that there are, for one that is not there.
Status CheckFleetPlanner(std::string_view planner);

// A plan of the fleet by the planner of that name. An error for an input that CheckFleet refuses
// (kInvalidArgument), and kNotFound for a name that is not there. What cannot be placed is in
// short_of.
Expected<FleetPlan> PlanFleet(std::string_view planner, const FleetInput& input);
// Whether its plans keep an accelerator's use within its most.
UseLimit UseLimitOf(std::string_view planner);

}  // namespace tactus
