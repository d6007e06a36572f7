// How two lanes of a scenario's simulated device slow each other, as pairs of batches: what a
// measured table of pairs (sim/devices/interference_pairs.h) is of a real device.
#pragma once

#include <vector>

#include "base/expected.h"
#include "planners/gpulet/interference_fit.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

// Each two of the scenario's models, batches of 2 to 32 in powers of two, every split of a device
// into two [plan] shares: a sample for each side, both with luck of their own, drawn by the
// scenario's seed. kInvalidArgument where lanes do not slow each other ([contention]) or a device
// is never split.
Expected<std::vector<InterferenceSample>> SimulatedPairs(const Scenario& scenario,
                                                         const ProfileFile& profile);

}  // namespace tactus
