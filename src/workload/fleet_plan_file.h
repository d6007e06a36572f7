// A plan of a fleet as JSON, by names, so that it can be read, edited and checked against the fleet
// that it is used with. `tactus plan fleet --out` writes one, `tactus simulate --plan` runs it.
//
//   {"tactus_fleet_plan": 1, "planner": "octopinf", "epoch": 1, "latency_ms": {pipeline: ...},
//    "instances": [{"pipeline", "stage", "device", "accelerator", "stream", "batch", "offset_ms",
//                   "length_ms", "cycle_ms",
//                   "also": [{"pipeline", "stage"}]}],      // where stages share it
//    "routes": [{"pipeline", "stage", "to": [{"device", "weight"}]}],
//    "short_of": [{"pipeline", "stage", "missing_rps", "why"}],
//    "made_for": {pipeline: {"rate_rps", "slo_ms"}},        // may be left out
//    "reasons": [{"pipeline", "stage", "why"}]}
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/fleet_plan.h"

namespace tactus {

struct FleetPlanFile {
  std::string planner;
  FleetPlan plan;
  // What of the fleet is not as it was when the plan was made, a line each.
  std::vector<std::string> doubts;

  bool operator==(const FleetPlanFile&) const = default;
};

// `plan` is one for `input`, which CheckFleet lets pass. Read again it is the same.
std::string FleetPlanJson(const FleetPlan& plan, const FleetInput& input, std::string_view planner);

// The plan, for the fleet `input`. kInvalidArgument names `where`, the place in the file, and the
// remedy: what is no plan, names that the fleet has not, and what FaultOf finds. Whether use is
// kept within its most is the planner's affair (UseLimitOf), and is not asked.
Expected<FleetPlanFile> ParseFleetPlan(std::string_view text, std::string_view where,
                                       const FleetInput& input);
Expected<FleetPlanFile> LoadFleetPlan(const std::filesystem::path& path, const FleetInput& input);

}  // namespace tactus
