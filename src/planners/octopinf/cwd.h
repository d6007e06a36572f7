// OctopInf's cross-device workload distributor (Algorithm 1): for each stage of each pipeline the
// device, the batch and how many instances. Everything begins on a server with batches of one; then
// batches double, the burstiest stage first, while the worst latency stays within half the SLO and
// the accelerators get less to do; then stages move to the source's device from the first one on,
// where that does not send more over the link than before.
#pragma once

#include <vector>

#include "planners/fleet_estimate.h"

namespace tactus {

// Whether stages of one model share their instances on a server (planners/fleet_sharing.h): never,
// from the search of batches on (not in Algorithm 1), or once all stages are where they stay.
enum class WhenShared { kNever, kBefore, kAfter };

struct CwdOptions {
  double alpha = 0.6;      // of line 37; the paper does not say it, the authors' code does
  double most_edge = 0.9;  // of a source device's accelerators' time
  bool to_edge = true;     // false: on servers only
  bool to_server = true;   // false: on source devices where models run there at all
  bool relieve = false;    // place anew what is late or too busy in the end (relief.h)
  bool windows = true;     // instances get windows (coral.h), so relief counts these
  WhenShared share = WhenShared::kNever;
  bool static_batches = false;  // `fixed` instead of searched, as rivals have it
  StaticBatches fixed = {};
};

// `input` is one that CheckFleet accepts.
PlacedFleet DistributeWorkload(const FleetInput& input, const CwdOptions& options = {});

}  // namespace tactus
