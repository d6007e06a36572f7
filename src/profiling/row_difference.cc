#include "profiling/row_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/half.h"

namespace tactus {
namespace {

// On a processor the rows of real networks (models/) are equal to the bit, and those of a network
// that is quantized as it runs differ by ten times as much as this at least.
constexpr double kOfItself = 1e-3;
constexpr double kOfLargest = 2e-4;

template <class T>
T At(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// `number` makes a double of a T.
template <class T, class Number>
RowDifference CompareNumbers(std::span<const std::byte> a, std::span<const std::byte> b,
                             double of_itself, double of_largest, Number number) {
  RowDifference difference{.elements = a.size() / sizeof(T)};
  double largest = 0;
  for (std::size_t i = 0; i < difference.elements; ++i) {
    const double value = std::abs(number(At<T>(a, i)));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (std::size_t i = 0; i < difference.elements; ++i) {
    const double x = number(At<T>(a, i));
    const double y = number(At<T>(b, i));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double apart = std::abs(x - y);
    const bool number_at_all = std::isfinite(apart);
    difference.largest = std::max(difference.largest,
                                  number_at_all ? apart : std::numeric_limits<double>::infinity());
    const double allowed = of_itself * std::max(std::abs(x), std::abs(y)) + of_largest * largest;
    if (!number_at_all || apart > allowed) ++difference.beyond;
  }
  return difference;
}

template <class T>
RowDifference CompareExactly(std::span<const std::byte> a, std::span<const std::byte> b) {
  return CompareNumbers<T>(a, b, 0, 0, [](T value) { return static_cast<double>(value); });
}

RowDifference CompareStrings(std::span<const std::byte> a, std::span<const std::byte> b) {
  const bool same = std::ranges::equal(a, b);
  return {.largest = same ? 0 : std::numeric_limits<double>::infinity(),
          .elements = 1,
          .beyond = same ? std::size_t{0} : 1};
}

}  // namespace

RowDifference Compare(DataType type, std::span<const std::byte> alone,
                      std::span<const std::byte> together, double slack) {
  if (type == DataType::kBytes || alone.size() != together.size()) {
    return CompareStrings(alone, together);
  }
  const double self = slack * kOfItself;
  const double most = slack * kOfLargest;
  const auto as_it_is = [](double value) { return value; };
  switch (type) {
    case DataType::kFp32:
      return CompareNumbers<float>(alone, together, self, most, as_it_is);
    case DataType::kFp64:
      return CompareNumbers<double>(alone, together, self, most, as_it_is);
    case DataType::kFp16:
      return CompareNumbers<std::uint16_t>(alone, together, 10 * self, 10 * most, FromHalf);
    case DataType::kBf16:
      return CompareNumbers<std::uint16_t>(alone, together, 30 * self, 30 * most, FromBrainHalf);
    case DataType::kInt8:
      return CompareExactly<std::int8_t>(alone, together);
    case DataType::kInt16:
      return CompareExactly<std::int16_t>(alone, together);
    case DataType::kUint16:
      return CompareExactly<std::uint16_t>(alone, together);
    case DataType::kInt32:
      return CompareExactly<std::int32_t>(alone, together);
    case DataType::kUint32:
      return CompareExactly<std::uint32_t>(alone, together);
    case DataType::kInt64:
      return CompareExactly<std::int64_t>(alone, together);
    case DataType::kUint64:
      return CompareExactly<std::uint64_t>(alone, together);
    default:
      return CompareExactly<std::uint8_t>(alone, together);
  }
}

}  // namespace tactus
