// The end of the workload distributor, ours and not in the paper: Algorithm 1 decides for one
// pipeline after the other and never looks back, so at its end some may be late by the estimate, or
// have servers without time for them; and it counts on links to carry until the next plan what they
// did in the last minute. Each pipeline that would lose results where they carry less is placed
// anew, given where all others are.
#pragma once

#include <vector>

#include "planners/fleet_estimate.h"

namespace tactus {

struct ReliefOptions {
  // What links may carry until the next plan, as parts of what they carry now, each as likely.
  std::vector<double> link_parts = {1, 0.5, 0.25, 0.125};
  // Parts of a link's capacity that items may use: more would wait too long, and where that is
  // still too much for the SLO, fewer are sent (a camera drops its older frames). The largest in
  // time holds.
  std::vector<double> through = {0.7, 0.5, 0.3};
  double most_edge = 0.9;  // of a source device's accelerators' time
  // Whether instances get windows (coral.h): then a stream runs one batch at a time, a device as
  // many as it has streams, and what is beyond that makes all the others late. Without windows
  // batches run beside each other as far as their use allows.
  bool windows = false;
};

// Changes batches and devices of such pipelines' stages, one stage at a time, as long as that
// sustains more results in time; reasons and links with them. Nothing where all is sustained.
void RelievePipelines(const FleetInput& input, const ReliefOptions& options, PlacedFleet& placed);

}  // namespace tactus
