// A fleet in virtual time: the dispatchers of all its devices, its links, its pipeline requests and
// its controller under one clock.
//
//   auto report = SimulateFleet(scenario, {.policies = MakePolicy});
//
// Deterministic: the same scenario gives the same report, byte for byte. What is in pictures
// depends on the seed alone, so all planners and policies meet the same frames. Results that stages
// before the sink give up early cost nothing further; where the sink is another site's, the last
// answers go there over the link. The sink is the first server that the source reaches, else the
// source.
#pragma once

#include <vector>

#include "metrics/fleet_report.h"
#include "sim/fleet/fleet_node.h"
#include "workload/fleet_scenario.h"

namespace tactus {

// The device's accelerators stop: what runs there is lost and runs again once they are back, if
// there is time. Its camera and its links go on.
struct DeviceCrash {
  DeviceId device;
  TimePoint at, back;
};
struct LinkOutage {
  std::size_t link = 0;
  TimePoint from, to;
};

struct FleetSimulationOptions {
  PolicyMaker policies;
  const FleetPlan* plan = nullptr;  // serves at first; null: the planner's
  std::vector<DeviceCrash> crashes;
  std::vector<LinkOutage> outages;
};

// kInvalidArgument for a plan of another fleet, an unknown planner or policy, or pipelines that a
// Flow does not take.
Expected<FleetReport> SimulateFleet(const FleetScenario& scenario,
                                    const FleetSimulationOptions& options);

}  // namespace tactus
