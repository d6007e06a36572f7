// How far two answers to the same row lie apart, once alone and once among other rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace tactus {

constexpr bool IsFloat(DataType type) {
  return type == DataType::kFp32 || type == DataType::kFp64 || type == DataType::kFp16 ||
         type == DataType::kBf16;
}

struct RowDifference {
  double largest = 0;        // between two numbers; infinite where only one is one
  std::size_t elements = 0;  // compared
  std::size_t beyond = 0;    // of these, differ by more than batches of other sizes explain

  bool none() const { return beyond == 0; }
  // Rounding may swap two near ties, in a list of the best for instance; more is dependence.
  bool few() const { return beyond > 0 && beyond * 100 <= elements; }
};

// What an output gave for several unlike rows, each alone.
struct RowNumbers {
  // How large its numbers are: the largest, a mask's left out. Masks (-1e9, the lowest number) are
  // so large that any error would be small beside them. They occur again and again, so values that
  // occur once count; and what is above 1 and a hundred times the median counts as that much.
  double size = 0;
  bool varies = false;     // a finite element is another in another row
  bool no_number = false;  // there are elements, and none is finite
  bool fraction = false;   // a finite element is no whole number
};
RowNumbers NumbersOf(DataType type, const std::vector<std::span<const std::byte>>& rows);

// At most `most` numbers of a row, evenly chosen; 0 for what is not finite. How long the row is
// comes before them. Of strings, it and their hash.
std::vector<double> SomeNumbers(DataType type, std::span<const std::byte> row, std::size_t most);

// How far apart batches of other sizes explain that `number` is, as for Compare.
double Rounding(DataType type, double number, double size, double slack);

// The elements of one row of an output. Kernels add up in another order for another number of rows,
// so numbers of floating-point types may differ by `slack` times 0.1 % of themselves and 0.02 % of
// `size` (FP16: ten times, BF16: thirty times as much). All others must be equal.
RowDifference Compare(DataType type, std::span<const std::byte> alone,
                      std::span<const std::byte> together, double size, double slack);

}  // namespace tactus
