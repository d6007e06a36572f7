// How accurate any schedule could be under a load: the compass beside every accuracy that is
// printed.
//
// Each second a lane has one second to spend. Let every request leave at the exit that takes the
// least time, in the batch that makes it cheapest, and spend what is left on deeper exits, where a
// second buys the most accuracy first: a fractional knapsack over the concave hull of each model's
// exits. Arrivals that are not smooth, deadlines, and batches that are not full only take away from
// that, so no scheduler beats it without leaving requests unserved.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/expected.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

struct ExitCost {
  double seconds = 0;   // of a lane, for one request
  double accuracy = 0;  // fraction in [0, 1]
};

struct AccuracyDemand {
  double rate_rps = 0;
  std::vector<ExitCost> exits;  // at least one, in any order
};

// The mean accuracy over all requests. `lanes` is seconds of lane time in a second. Where not even
// the quickest exits fit, the accuracy of the quickest exits; 0 for no demand.
double AccuracyLimit(std::span<const AccuracyDemand> demands, double lanes);

// The same where this part of all requests, in [0, 1], may be left unanswered: of the value, the
// accuracy of what is answered over all requests. Giving up a request of which any exit costs much
// may buy deeper exits for several others. 0 where more than that has to be left out.
double ValueLimit(std::span<const AccuracyDemand> demands, double lanes, double most_lost);

struct AccuracyLimits {
  double largest_batch = 0;  // always the batch that makes a request cheapest
  // Batches no larger than smooth arrivals fill: b <= 1 + rate (SLO - L(b)), as the first of them
  // waits for the last and then for the batch. Bursts fill larger ones, so a schedule may pass it.
  double by_rate = 0;

  bool operator==(const AccuracyLimits&) const = default;
};

// The same for a scenario at its nominal rates and the profile's mean latencies; nothing where no
// accuracy is known. A stage of a pipeline has the pipeline's SLO to gather in. An error when the
// profile does not cover the scenario.
Expected<std::optional<AccuracyLimits>> AccuracyLimit(const Scenario& scenario,
                                                      const ProfileFile& profile);
Expected<std::optional<AccuracyLimits>> ValueLimit(const Scenario& scenario,
                                                   const ProfileFile& profile, double most_lost);

}  // namespace tactus
