// What a device can hold, whatever lanes are made of it.
#pragma once

#include <limits>

namespace tactus {

struct DeviceLimits {
  // Lanes that a plan may make of the device at a time. gpu-lets splits it in two (Section 3.2).
  int most_lanes = 2;
  double memory_mb = std::numeric_limits<double>::infinity();
  double use = 1;  // the most that the fractions of its lanes add up to

  bool operator==(const DeviceLimits&) const = default;

  // Whether models that need so much together fit, but for rounding in their sum.
  bool HasMemoryFor(double needed_mb) const { return needed_mb <= memory_mb * (1 + 1e-9); }
};

}  // namespace tactus
