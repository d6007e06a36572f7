// Tensors as bytes with a type and a shape; dense, row-major, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tactus {

enum class DataType : std::uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  kBytes,
  kBf16,
};

// KServe v2 spelling: "FP32", "BYTES".
std::string_view Name(DataType type);
std::optional<DataType> ParseDataType(std::string_view name);
// Bytes of one element; 0 for kBytes, whose elements have lengths of their own.
std::size_t ElementSize(DataType type);

using Shape = std::vector<std::int64_t>;

// -1 is a dimension that the request fixes. Where the model batches, dims[0] is the batch and is
// -1.
struct TensorSpec {
  std::string name;
  DataType type = DataType::kFp32;
  Shape dims;  // as clients send or receive it
  // As the model itself takes or gives it, where that is another shape of the same elements
  // (SameElements). Only engines need it.
  std::optional<Shape> reshape = std::nullopt;
  bool optional = false;  // of an input: a request may leave it out, for the model's own default
  // Nobody states a shape, not even how many dimensions there are: any shape will do, and `dims` is
  // [-1], which is what is said of it where dims must be given.
  bool any_shape = false;
  // The graph's names of its open dimensions, by dimension; "" or nothing where it has none.
  std::vector<std::string> dim_names = {};

  std::string_view dim_name(std::size_t i) const {
    return i < dim_names.size() ? std::string_view(dim_names[i]) : std::string_view();
  }
  // Whether a tensor of this shape can be one of it.
  bool Takes(std::span<const std::int64_t> shape) const;
};

// Whether one is a scalar, [], and the other says it as config.pbtxt must, [1].
inline bool SameScalar(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  return (a.empty() && b.size() == 1 && b[0] == 1) || (b.empty() && a.size() == 1 && a[0] == 1);
}

// Whether a tensor of this shape can be one of these dims, of which -1 is any.
bool FitsDims(std::span<const std::int64_t> shape, std::span<const std::int64_t> dims);
// Whether tensors of the two dims have the same elements in the same order, whatever their open
// dimensions (-1) are: there are as many in both, and the sizes before, between and behind them
// have equal products.
bool SameElements(std::span<const std::int64_t> a, std::span<const std::int64_t> b);
// `shape`, which fits `from`, as it is by `to`: its open dimensions take the sizes that it has in
// those of `from`, in their order. SameElements(from, to) holds.
Shape Reshaped(std::span<const std::int64_t> shape, std::span<const std::int64_t> from,
               std::span<const std::int64_t> to);
// Elements of a shape; nothing for a negative dimension or a product beyond 2^62.
std::optional<std::int64_t> ElementCount(std::span<const std::int64_t> shape);
// Bytes of the first `elements` strings of a BYTES tensor's; nothing where they run past the end.
std::optional<std::size_t> BytesPrefix(std::span<const std::byte> data, std::int64_t elements);
std::string ToString(std::span<const std::int64_t> shape);  // "[1,28,28]"

}  // namespace tactus
