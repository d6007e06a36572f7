// An upper bound of the violations that chance causes on a lane, without a simulation: for the many
// lanes on which there is so much room that there are none.
#pragma once

#include "core/lanes_run.h"

namespace tactus {

// The fraction of the requests of a turn's model sent to the lane that may be violations;
// up to 1, where nothing is known. As if each turn of the other models took a whole planned batch,
// what waits when it is the model's turn is a Markov chain: what the turn before left, and what
// came since (Poisson). Whoever comes when that is less than so many planned batches as have time
// before the SLO is over is in time.
double MostViolationsByChance(const LaneWork& lane, std::size_t turn, const PlanInput& input);

}  // namespace tactus
