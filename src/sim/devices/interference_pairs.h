// Measured pairs of batches as a table: what the linear model of interference is fitted to, and
// which of them the fit must not see.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planners/gpulet/interference_fit.h"

namespace tactus {

struct InterferencePairs {
  std::vector<InterferenceSample> samples;  // a side of a pair each
  std::vector<bool> held_out;  // by sample, as the table says; empty: it leaves that open
};

// CSV with a header and a row for each side of a pair. Columns, in any order and among others:
//   slowdown                  its time beside the other over that alone, > 0
//   l2, dram                  what the batch alone keeps busy of the device, in [0, 1]
//   beside_l2, beside_dram    the same of its neighbour
//   held_out                  1: nothing was, nor is to be, fitted to it; else 0. May be missing
// `./run bench pairs --csv FILE` writes it. Errors name the line and the column.
Expected<InterferencePairs> ParseInterferencePairs(std::string_view text, const std::string& where);
Expected<InterferencePairs> LoadInterferencePairs(const std::string& path);

// As the table says; `pairs.held_out` is not empty.
SplitSamples SplitAsTold(const InterferencePairs& pairs);
// `held_out` of the pairs, a part in (0, 1), drawn by the seed; at least one on each side of two or
// more. The two sides of a pair stay together, and so do all measurements of the same two batches:
// samples with the same uses, or with each other's. A batch that was fitted beside its neighbour
// says too much of that neighbour beside it.
SplitSamples SplitByPair(std::span<const InterferenceSample> samples, double held_out,
                         std::uint64_t seed);

}  // namespace tactus
