// The contention physics (sim/devices/contention.h) that comes closest to measured pairs of
// batches.
#pragma once

#include <array>
#include <span>

#include "core/resource_use.h"
#include "sim/devices/contention.h"

namespace tactus {

// Two batches that ran again and again beside each other.
struct MeasuredPair {
  std::array<Throughput, 2> use{};      // of each alone
  std::array<double, 2> slowdown{};     // > 0: its mean time beside the other over that alone
  std::array<double, 2> slowdown_95{};  // its 95th percentile over the same
};

// What the physics says of a pair, without luck and with equal weights.
std::array<double, 2> Slowdowns(const Contention& contention, const MeasuredPair& pair);

struct FittedContention {
  Contention contention;
  double tail = 0;  // spread of luck's logarithm, as a scenario's [contention] takes it
};

// Least mean |log(predicted / measured)| over the capacities and the crosstalk, by coordinate
// descent from several starts; a capacity that nobody asks for stays 1. `tail` is what would make
// the 95th percentile of luck as far from its middle as is measured, in the median over the batches
// that lose 5 % or more; 0 if there are none.
FittedContention FitContention(std::span<const MeasuredPair> pairs);

}  // namespace tactus
