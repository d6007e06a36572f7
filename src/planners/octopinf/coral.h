// OctopInf's co-location scheduler (Algorithm 2): gives each instance of a placement a window on a
// stream of its device, best fit, one instance of each stage a round, so that every pipeline gets
// its first before any gets its second. Within memory (Eq. 4) and use (Eq. 5), which the authors'
// code does not test.
#pragma once

#include <span>

#include "planners/fleet_estimate.h"
#include "planners/octopinf/streams.h"

namespace tactus {

// An instance that finds no window is open (length 0) where memory and use allow it, and else is
// not there; both are in short_of, with why. `latency` is that of the placement.
FleetPlan ScheduleWindows(const FleetInput& input, const FleetPlacement& placement,
                          const LinkLoads& links);

// Puts one more instance of the stage as it is placed into `table`, with a window if there is one.
// Nothing where not even an open one fits. `placed` has the windows of the stages before it.
struct ScheduledInstance {
  bool placed = false;
  bool window = false;
  NoWindow why = NoWindow::kTime;
  FleetInstance instance;
};
ScheduledInstance ScheduleOne(const FleetInput& input, FleetPipelineId p, FleetStageId s,
                              const StagePlacement& at, std::span<const FleetInstance> placed,
                              StreamTable& table);

}  // namespace tactus
