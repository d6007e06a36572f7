// The most that this machine computes and moves, all its cores together: what the shares of a
// batch's resource figures are shares of.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/resource_use.h"

namespace tactus {

struct MachinePeaks {
  int cores = 0;
  double operations = 0;  // per second: additions and multiplications of 32-bit floats, fused
  double l1 = 0;          // bytes per second that are read from caches of a core's own ...
  double l2 = 0;
  double beyond = 0;         // ... and from what all cores share, last-level cache or memory
  std::size_t l1_bytes = 0;  // of one core
  std::size_t l2_bytes = 0;
};

// Measures on `cores` (all that the process may use when empty), on each a thread, at once; takes
// half a second. The operating system knows the sizes of the caches; where it does not, they are
// taken to be 32 KiB and 1 MiB.
MachinePeaks MeasurePeaks(const std::vector<int>& cores);

// How far figures that a profile rests on may move between two looks at them before it is said:
// Strait's predictions bear shares that are off by so much (Appendix A.2), and more is not tested.
inline constexpr double kMostUncertainty = 0.15;

// The higher rates of two measurements: other work only takes away.
MachinePeaks Best(const MachinePeaks& a, const MachinePeaks& b);
// A line for each rate of which one of two measurements lacks more than kMostUncertainty, with the
// remedy.
std::vector<std::string> Disagreements(const MachinePeaks& a, const MachinePeaks& b);

// By Resource, what a batch that does `work` in `seconds` alone uses of the machine, at most 1.
//
// A kernel reads each operand once from the smallest cache that can still hold it: what passed
// between two kernels from one that holds all operands of the reader, weights from one that holds
// all weights of the batch and the largest kernel's operands. Everything passes L1, and besides one
// byte for each multiply-add, about what kernels that keep a tile of the result in registers read
// anew. kDram is all that no core has in a cache of its own. kTensor is 0: a multiply-add is
// counted as FMA, whatever unit does it.
Throughput SharesOf(const BatchWork& work, double seconds, const MachinePeaks& peaks);

// Where such figures come from, for a profile.
std::string SourceOf(const MachinePeaks& peaks, const std::string& engine);

}  // namespace tactus
