#include "core/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace tactus {
namespace {

struct TypeRow {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeRow, 14> kTypes{{{"BOOL", 1},
                                          {"UINT8", 1},
                                          {"UINT16", 2},
                                          {"UINT32", 4},
                                          {"UINT64", 8},
                                          {"INT8", 1},
                                          {"INT16", 2},
                                          {"INT32", 4},
                                          {"INT64", 8},
                                          {"FP16", 2},
                                          {"FP32", 4},
                                          {"FP64", 8},
                                          {"BYTES", 0},
                                          {"BF16", 2}}};

}  // namespace

std::string_view Name(DataType type) { return kTypes[static_cast<std::size_t>(type)].name; }

std::optional<DataType> ParseDataType(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

std::size_t ElementSize(DataType type) { return kTypes[static_cast<std::size_t>(type)].size; }

bool TensorSpec::Takes(std::span<const std::int64_t> shape) const {
  return any_shape || FitsDims(shape, dims);
}

bool FitsDims(std::span<const std::int64_t> shape, std::span<const std::int64_t> dims) {
  return std::ranges::equal(
      shape, dims, [](std::int64_t size, std::int64_t dim) { return dim < 0 || dim == size; });
}

bool SameElements(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const auto until_open = [](std::span<const std::int64_t> dims) {
    const auto open = std::ranges::find_if(dims, [](std::int64_t dim) { return dim < 0; });
    return static_cast<std::size_t>(open - dims.begin());
  };
  for (;;) {
    const std::size_t i = until_open(a);
    const std::size_t j = until_open(b);
    const auto count = ElementCount(a.first(i));
    if (!count || count != ElementCount(b.first(j))) return false;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    a = a.subspan(i + 1);
    b = b.subspan(j + 1);
  }
}

Shape Reshaped(std::span<const std::int64_t> shape, std::span<const std::int64_t> from,
               std::span<const std::int64_t> to) {
  Shape made(to.begin(), to.end());
  auto next = made.begin();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0) continue;
    next = std::find_if(next, made.end(), [](std::int64_t dim) { return dim < 0; });
    CHECK(next != made.end(), "as many dimensions are open in both");
    *next++ = shape[i];
  }
  return made;
}

std::optional<std::int64_t> ElementCount(std::span<const std::int64_t> shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t count = 1;
  bool zero = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) zero = true;
    if (dim > 0 && count > kMost / dim) return std::nullopt;
    if (dim > 0) count *= dim;
  }
  return zero ? 0 : count;
}

std::optional<std::size_t> BytesPrefix(std::span<const std::byte> data, std::int64_t elements) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    std::uint32_t length = 0;
    if (data.size() - at < sizeof length) return std::nullopt;
    std::memcpy(&length, data.data() + at, sizeof length);
    at += sizeof length;
    if (data.size() - at < length) return std::nullopt;
    at += length;
  }
  return at;
}

std::string ToString(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace tactus
