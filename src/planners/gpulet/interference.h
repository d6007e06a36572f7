// How much longer a batch takes because of another one in the same device's other lane: the linear
// model of gpu-lets, Section 4.4. It only predicts; the simulator slows batches by other rules.
#pragma once

#include <array>

#include "core/planner.h"

namespace tactus {

// factor = c1 l2 + c2 l2' + c3 dram + c4 dram' + c5, of the batch itself and of the other ('),
// where l2 and dram are the shares of the device's throughput that each keeps busy alone.
struct InterferenceModel {
  std::array<double, 5> c{0, 0, 0, 0, 1};

  double Factor(const Throughput& own, const Throughput& other) const;
  // How many times longer: that, but at least 1.
  double Slowdown(const Throughput& own, const Throughput& other) const;
  // What the other one adds to it, whoever the batch itself is.
  double Weight(const Throughput& other) const;
};

// What model `m` asks of the device in such a lane at worst: of the batches that its SLO allows
// (2 L(b) <= SLO), by resource. So the factor depends on no batch that is still to be chosen.
Throughput WorstUse(const PlanInput& input, LaneClass lane, ModelId m);

// kInvalidArgument, with the pair of models and lanes, where it says that a batch takes less than
// kLeastFactor of its time because of a neighbour, or even less than none. A line through measured
// slowdowns falls a little below 1 where neither uses much; no neighbour quickens a batch.
inline constexpr double kLeastFactor = 0.75;
Status CheckPredictions(const InterferenceModel& interference, const PlanInput& input);

}  // namespace tactus
