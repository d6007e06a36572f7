// Measured pairs of batches as a table: what the linear model of interference is fitted to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planners/gpulet/interference_fit.h"

namespace tactus {

// CSV with a header and a row for each side of a pair. Columns, in any order and among others:
//   slowdown                  its time beside the other over that alone, > 0
//   l2, dram                  what the batch alone keeps busy of the device, in [0, 1]
//   beside_l2, beside_dram    the same of its neighbour
// `./run bench pairs --csv FILE` writes it. Errors name the line and the column.
Expected<std::vector<InterferenceSample>> ParseInterferencePairs(std::string_view text,
                                                                 const std::string& where);
Expected<std::vector<InterferenceSample>> LoadInterferencePairs(const std::string& path);

}  // namespace tactus
