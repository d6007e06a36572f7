// Spreads the instances of a placement over the accelerators of their devices without windows: each
// goes where least of an accelerator's time is taken, in its memory's limits. What OctopInf's
// rivals do, and OctopInf without CORAL ("w/o CORAL" in Figure 10).
#pragma once

#include "planners/fleet_estimate.h"

namespace tactus {

// Use (Eq. 5) is no limit: that lanes slow each other is what windows are to avoid. An instance for
// which no accelerator has the memory is in short_of.
FleetPlan SpreadInstances(const FleetInput& input, const FleetPlacement& placement,
                          const LinkLoads& links);

}  // namespace tactus
