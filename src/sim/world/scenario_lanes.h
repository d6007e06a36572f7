// What a scenario says of its lanes: how fast each is, what kind it is, and how many are open when.
#pragma once

#include <span>
#include <vector>

#include "core/plan.h"
#include "sim/simulation.h"
#include "sim/world/lane_scaler.h"

namespace tactus {

LaneScalerOptions MakeScaler(const Scenario& scenario);

// By LaneId: what a scenario says of its lanes. Those of a plan are all of devices as profiled.
std::vector<double> SpeedsOf(const Scenario& scenario, std::size_t lanes);

// By LaneId; empty names where all are alike.
std::vector<LaneTotals> TotalsOf(const Scenario& scenario, std::span<const LaneSpec> lanes);

}  // namespace tactus
