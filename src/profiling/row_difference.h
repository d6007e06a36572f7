// How far two answers to the same row lie apart, once alone and once among other rows.
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor.h"

namespace tactus {

struct RowDifference {
  double largest = 0;        // between two numbers; infinite where only one is one
  std::size_t elements = 0;  // compared
  std::size_t beyond = 0;    // of these, differ by more than batches of other sizes explain

  bool none() const { return beyond == 0; }
  // Rounding may swap two near ties, in a list of the best for instance; more is dependence.
  bool few() const { return beyond > 0 && beyond * 100 <= elements; }
};

// The elements of one row of an output. Kernels add up in another order for another number of rows,
// so numbers of floating-point types may differ by `slack` times 0.1 % of themselves and 0.02 % of
// the row's largest (FP16: ten times, BF16: thirty times as much). All others must be equal.
RowDifference Compare(DataType type, std::span<const std::byte> alone,
                      std::span<const std::byte> together, double slack);

}  // namespace tactus
