// The planners that OctopInf is compared with (Section IV-A3), on the same estimates: where stages
// run and in which batches. None looks at links before it decides. Each is spread over accelerators
// without windows (fleet_spread.h).
#pragma once

#include "planners/fleet_estimate.h"

namespace tactus {

// Distream: each pipeline is cut once, where the source's device and the servers are equally busy
// for what they have.
PlacedFleet PlaceDistream(const FleetInput& input, const StaticBatches& batches = {});
// Jellyfish: all on servers, the largest batch up to 16 with which the pipeline is in time.
PlacedFleet PlaceJellyfish(const FleetInput& input);
// Rim: as much as the source's device can do, of the first three stages.
PlacedFleet PlaceRim(const FleetInput& input, const StaticBatches& batches = {});

}  // namespace tactus
