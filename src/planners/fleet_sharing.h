// Server instances that stages of several sources share (not in OctopInf's paper; the authors' code
// does it): stages of one model on one server are run by the same instances, in one queue and in
// batches of all their items, which fill sooner.
#pragma once

#include <vector>

#include "planners/fleet_estimate.h"

namespace tactus {

enum class SharedBatches { kSearched, kAsPlaced };

// Batches and instances of the stages on servers, those of one model on one server together. As
// placed: each group has the smallest of its batches. Searched: anew from batches of one; they
// double, the burstiest stages first, while that takes less
// of the accelerators' time and no pipeline becomes later than half its SLO, or than its SLO where
// it has a stage at its source. A pipeline that is later with batches of one holds nobody up. What
// is not placed yet (a pipeline without stages in the placement) is left out.
void ShareServers(const FleetInput& input, SharedBatches batches, PlacedFleet& placed);

// Which stages the same instances run: a stage alone, or those that share. The first of a group is
// the instances' own, with the shortest SLO, whose half is the cycle; groups come in the order of
// their first stages.
std::vector<std::vector<FleetStageRef>> InstanceGroups(const FleetInput& input,
                                                       const FleetPlacement& placement);

}  // namespace tactus
