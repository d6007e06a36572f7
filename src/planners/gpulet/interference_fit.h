// The linear model of interference, fitted by least squares to measured pairs (gpu-lets, Section
// 4.4): 70 % of the measurements are fitted, the others say how far it is off.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/gpulet/interference.h"

namespace tactus {

// One side of a pair that ran at once in a device's two lanes.
struct InterferenceSample {
  Throughput own{};    // of the batch alone, in its lane
  Throughput other{};  // of its neighbour alone
  double factor = 1;   // its time beside the neighbour over that alone, > 0
};

// The coefficients with the least squared error of the factor. One that the samples do not tell
// from the others, as that of a resource which nobody uses, is 0. kInvalidArgument for fewer than
// five samples.
Expected<InterferenceModel> FitInterference(std::span<const InterferenceSample> samples);

// |predicted - measured| over measured, ascending.
std::vector<double> RelativeErrors(const InterferenceModel& model,
                                   std::span<const InterferenceSample> samples);

struct SplitSamples {
  std::vector<InterferenceSample> fitted;
  std::vector<InterferenceSample> held_out;
};
// `held_out` of them, a part in (0, 1), drawn by the seed; at least one on each side of two or
// more.
SplitSamples Split(std::span<const InterferenceSample> samples, double held_out,
                   std::uint64_t seed);

// The smallest that `part`, in [0, 1], of the ascending values do not exceed; 0 for none.
double QuantileOf(std::span<const double> ascending, double part);

}  // namespace tactus
