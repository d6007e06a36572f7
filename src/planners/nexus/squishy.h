// Nexus's squishy bin packing (Shen et al., SOSP 2019, Algorithm 1): which models share a lane, and
// in batches of what size, so that each meets its SLO on average. Pure: same input, same plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/serving_time.h"
#include "core/planner.h"

namespace tactus {

struct NexusSession {  // one model
  double rate_rps = 0;
  Duration slo{};
  std::vector<Duration> latency;  // l(b) at index b - 1; empty: not served
};

// A lane's cycle and, for each of its models in the order they run, the batch it gathers in a
// cycle.
//
//   saturated lanes  batch B = the largest with 2 l(B) <= SLO, cycle l(B); as many as the rate
//                    fills
//   the rest         batch b = the largest with l(b) + b / rate <= SLO, cycle b / rate; lanes
//                    are merged, the fullest first, into the lane that they fill best: cycle =
//                    the shorter one, batches b = rate * cycle rounded up, as long as the
//                    batches fit into the cycle and each model's l(b) + cycle into its SLO
//
// The plan is for the largest multiple of the rates that fits the lanes: under it Nexus has slack,
// and where the load is too much every model gets the same part of it. (Nexus would ask for more
// machines; the cluster's size is given here.)
Plan PlanNexus(std::span<const NexusSession> sessions, int lanes, std::uint64_t epoch);

// The same packing for a planner's input, on lanes of one class (whole devices, or devices in equal
// parts), for the rates as they are. No lane has more models than a device has memory for, and each
// goes to the first device that has room for it. kResourceExhausted where they need more lanes, or
// where such a lane is too slow for a model. What CheckPlannable says.
Expected<Plan> PlanSquishy(const PlanInput& input, LaneClass lane);

}  // namespace tactus
