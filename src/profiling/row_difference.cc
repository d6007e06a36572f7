#include "profiling/row_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/fnv.h"
#include "core/half.h"

namespace tactus {
namespace {

// On a processor the rows of real networks (models/) are equal to the bit, and those of a network
// that is quantized as it runs differ by ten times as much as this at least.
constexpr double kOfItself = 1e-3;
constexpr double kOfSize = 2e-4;
constexpr std::size_t kMostSized = 4096;  // elements of a row, to learn how large they are

template <class T>
T At(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
double NumberAt(std::span<const std::byte> bytes, std::size_t i) {
  return static_cast<double>(At<T>(bytes, i));
}
double HalfAt(std::span<const std::byte> bytes, std::size_t i) {
  return FromHalf(At<std::uint16_t>(bytes, i));
}
double BrainHalfAt(std::span<const std::byte> bytes, std::size_t i) {
  return FromBrainHalf(At<std::uint16_t>(bytes, i));
}

struct Kind {
  double (*at)(std::span<const std::byte>, std::size_t);
  double rounding;  // times that of FP32; 0: there is none
};

Kind KindOf(DataType type) {
  switch (type) {
    case DataType::kFp32:
      return {NumberAt<float>, 1};
    case DataType::kFp64:
      return {NumberAt<double>, 1};
    case DataType::kFp16:
      return {HalfAt, 10};
    case DataType::kBf16:
      return {BrainHalfAt, 30};
    case DataType::kInt8:
      return {NumberAt<std::int8_t>, 0};
    case DataType::kInt16:
      return {NumberAt<std::int16_t>, 0};
    case DataType::kUint16:
      return {NumberAt<std::uint16_t>, 0};
    case DataType::kInt32:
      return {NumberAt<std::int32_t>, 0};
    case DataType::kUint32:
      return {NumberAt<std::uint32_t>, 0};
    case DataType::kInt64:
      return {NumberAt<std::int64_t>, 0};
    case DataType::kUint64:
      return {NumberAt<std::uint64_t>, 0};
    default:
      return {NumberAt<std::uint8_t>, 0};
  }
}

RowDifference CompareStrings(std::span<const std::byte> a, std::span<const std::byte> b) {
  const bool same = std::ranges::equal(a, b);
  return {.largest = same ? 0 : std::numeric_limits<double>::infinity(),
          .elements = 1,
          .beyond = same ? std::size_t{0} : 1};
}

// See RowNumbers::size. `values` are not negative.
double SizeOf(std::vector<double>& values) {
  std::ranges::sort(values);
  std::vector<double> distinct;
  double once = 0;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t next = i + 1;
    while (next < values.size() && values[next] == values[i]) ++next;
    if (values[i] > 0) distinct.push_back(values[i]);
    if (next == i + 1) once = values[i];
    i = next;
  }
  if (distinct.empty()) return 0;
  const double median = distinct[(distinct.size() - 1) / 2];
  return once > 0 ? std::min(once, std::max(1.0, 100 * median)) : median;
}

}  // namespace

RowNumbers NumbersOf(DataType type, const std::vector<std::span<const std::byte>>& rows) {
  RowNumbers numbers;
  const auto unlike = [&](const auto& row) { return row.size() != rows[0].size(); };
  if (type == DataType::kBytes || std::ranges::any_of(rows, unlike)) {
    numbers.varies = std::ranges::any_of(
        rows, [&](const auto& row) { return !std::ranges::equal(row, rows[0]); });
  }
  if (type == DataType::kBytes) return numbers;
  const Kind kind = KindOf(type);
  std::vector<double> values;
  bool finite = false;
  bool any = false;
  for (const auto& row : rows) {
    const std::size_t count = row.size() / ElementSize(type);
    const std::size_t step = count / kMostSized + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = kind.at(row, i);
      any = true;
      if (!std::isfinite(value)) continue;
      finite = true;
      numbers.fraction = numbers.fraction || std::trunc(value) != value;
      if (i % step == 0) values.push_back(std::abs(value));
      if (numbers.varies || row.size() != rows[0].size()) continue;
      const double first = kind.at(rows[0], i);
      numbers.varies = std::isfinite(first) && first != value;
    }
  }
  numbers.no_number = any && !finite;
  numbers.size = SizeOf(values);
  return numbers;
}

std::vector<double> SomeNumbers(DataType type, std::span<const std::byte> row, std::size_t most) {
  std::vector<double> numbers{static_cast<double>(row.size())};
  if (type == DataType::kBytes) {
    const std::string_view text(reinterpret_cast<const char*>(row.data()), row.size());
    numbers.push_back(static_cast<double>(Fnv1a(text) >> 32));
    return numbers;
  }
  const Kind kind = KindOf(type);
  const std::size_t count = row.size() / ElementSize(type);
  for (std::size_t i = 0; i < count; i += count / most + 1) {
    const double number = kind.at(row, i);
    numbers.push_back(std::isfinite(number) ? number : 0);
  }
  return numbers;
}

double Rounding(DataType type, double number, double size, double slack) {
  const double rounding = type == DataType::kBytes ? 0 : KindOf(type).rounding;
  return slack * rounding * (kOfItself * std::abs(number) + kOfSize * size);
}

RowDifference Compare(DataType type, std::span<const std::byte> alone,
                      std::span<const std::byte> together, double size, double slack) {
  if (type == DataType::kBytes || alone.size() != together.size()) {
    return CompareStrings(alone, together);
  }
  if (alone.empty() || std::memcmp(alone.data(), together.data(), alone.size()) == 0) {
    return {.elements = alone.size() / ElementSize(type)};
  }
  const Kind kind = KindOf(type);
  const double of_itself = slack * kind.rounding * kOfItself;
  const double of_size = slack * kind.rounding * kOfSize * size;
  RowDifference difference{.elements = alone.size() / ElementSize(type)};
  for (std::size_t i = 0; i < difference.elements; ++i) {
    const double x = kind.at(alone, i);
    const double y = kind.at(together, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double apart = std::abs(x - y);
    const bool number_at_all = std::isfinite(apart);
    difference.largest = std::max(difference.largest,
                                  number_at_all ? apart : std::numeric_limits<double>::infinity());
    const double allowed = of_itself * std::max(std::abs(x), std::abs(y)) + of_size;
    if (!number_at_all || apart > allowed) ++difference.beyond;
  }
  return difference;
}

}  // namespace tactus
