// The end of the workload distributor, ours and not in the paper: Algorithm 1 decides for one
// pipeline after the other and never looks back, so at its end some may be late by the estimate, or
// have servers without time for them. Each of these is placed anew, given where all others are.
#pragma once

#include "planners/fleet_estimate.h"

namespace tactus {

// Changes batches and devices of such pipelines' stages, one stage at a time, as long as that
// carries more results in time; reasons and links with them. Nothing where all is carried.
// `most_edge`: the part of a source device's accelerators that may be busy.
void RelievePipelines(const FleetInput& input, double most_edge, PlacedFleet& placed);

}  // namespace tactus
