#include "planners/fleet_registry.h"

#include <algorithm>
#include <array>
#include <string>

#include "planners/fleet_rivals/rivals.h"
#include "planners/fleet_spread.h"
#include "planners/octopinf/coral.h"
#include "planners/octopinf/cwd.h"

namespace tactus {
namespace {

constexpr std::array<FleetPlannerInfo, 13> kPlanners = {{
    {"octopinf",
     "CWD places stages and chooses batches, CORAL gives them windows; stages of one model "
     "share server instances"},
    {"octopinf-unshared", "the same, each stage with instances of its own, as the paper has it"},
    {"octopinf-shared-after", "the same, shared once all stages are where they stay"},
    {"octopinf-no-coral", "the same placement, spread over accelerators without windows"},
    {"octopinf-relieved",
     "ours: then what is late or too busy, or would be over a slower link, is "
     "placed anew; without windows"},
    {"octopinf-relieved-unshared", "the same, each stage with instances of its own"},
    {"octopinf-relieved-windows", "the same with windows, whose limits relief knows"},
    {"octopinf-static", "batches of 2, 4 and 8 as rivals have them, with windows"},
    {"octopinf-server", "on servers only, with windows"},
    {"octopinf-edge", "at the sources where models run there, with windows"},
    {"distream", "one cut a pipeline where source and servers are equally busy; static batches"},
    {"jellyfish", "on servers, the largest batch that is in time"},
    {"rim", "the first stages at the source as far as it can; static batches"},
}};

// What the name of one of OctopInf's planners says.
CwdOptions OptionsOf(std::string_view planner) {
  CwdOptions options;
  options.static_batches = planner == "octopinf-static";
  options.to_edge = planner != "octopinf-server";
  options.to_server = planner != "octopinf-edge";
  options.relieve = planner.starts_with("octopinf-relieved");
  options.windows = UseLimitOf(planner) == UseLimit::kKept;
  const bool after = planner == "octopinf-shared-after" || options.relieve;
  options.share = planner.ends_with("-unshared") ? WhenShared::kNever
                  : after                        ? WhenShared::kAfter
                                                 : WhenShared::kBefore;
  return options;
}

FleetPlan WithReasons(FleetPlan plan, PlacedFleet&& placed) {
  plan.reasons = std::move(placed.reasons);
  return plan;
}

}  // namespace

std::span<const FleetPlannerInfo> FleetPlanners() { return kPlanners; }

UseLimit UseLimitOf(std::string_view planner) {
  const bool windows = planner.starts_with("octopinf") && planner != "octopinf-no-coral" &&
                       planner != "octopinf-relieved" && planner != "octopinf-relieved-unshared";
  return windows ? UseLimit::kKept : UseLimit::kNone;
}

Status CheckFleetPlanner(std::string_view planner) {
  if (std::ranges::find(kPlanners, planner, &FleetPlannerInfo::name) != kPlanners.end()) return {};
  std::string known;
  for (const FleetPlannerInfo& each : kPlanners) {
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  return NotFound("no planner '" + std::string(planner) + "'; there are " + known);
}

Expected<FleetPlan> PlanFleet(std::string_view planner, const FleetInput& input) {
  if (auto known = CheckFleetPlanner(planner); !known) return std::unexpected(known.error());
  if (auto checked = CheckFleet(input); !checked) return std::unexpected(checked.error());
  const auto spread = [&](PlacedFleet placed) {
    return WithReasons(SpreadInstances(input, placed.placement, placed.links), std::move(placed));
  };
  if (planner == "distream") return spread(PlaceDistream(input));
  if (planner == "jellyfish") return spread(PlaceJellyfish(input));
  if (planner == "rim") return spread(PlaceRim(input));
  PlacedFleet placed = DistributeWorkload(input, OptionsOf(planner));
  if (UseLimitOf(planner) == UseLimit::kNone) return spread(std::move(placed));
  return WithReasons(ScheduleWindows(input, placed.placement, placed.links), std::move(placed));
}

}  // namespace tactus
