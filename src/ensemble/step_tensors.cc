#include "ensemble/step_tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace tactus {
namespace {

// Bytes [from, from + length) of the tensor.
void AppendBytes(OutputTensor& to, const OutputTensor& of, std::size_t from, std::size_t length) {
  for (const std::span<const std::byte> part : of.parts) {
    if (length == 0) return;
    if (from >= part.size()) {
      from -= part.size();
      continue;
    }
    const std::size_t taken = std::min(length, part.size() - from);
    AppendPart(to, part.subspan(from, taken));
    from = 0;
    length -= taken;
  }
}

std::size_t BytesOf(const OutputTensor& tensor) {
  std::size_t bytes = 0;
  for (const auto& part : tensor.parts) bytes += part.size();
  return bytes;
}

// Elements [first, first + count) of a BYTES tensor, each a length and that many bytes; false where
// they run past the end. Parts hold whole elements.
bool AppendElements(OutputTensor& to, const OutputTensor& of, std::int64_t first,
                    std::int64_t count) {
  std::int64_t element = 0;
  for (std::span<const std::byte> part : of.parts) {
    while (!part.empty() && element < first + count) {
      std::uint32_t length = 0;
      if (part.size() < sizeof length) return false;
      std::memcpy(&length, part.data(), sizeof length);
      const std::size_t whole = sizeof length + length;
      if (part.size() < whole) return false;
      if (element >= first) AppendPart(to, part.first(whole));
      part = part.subspan(whole);
      ++element;
    }
  }
  return element >= first + count;
}

// Without the batch's dimension: the first that is left counts rows.
Expected<Shape> RowsShape(const OutputTensor& whole, bool batched) {
  Shape shape = whole.shape;
  if (batched) {
    if (shape.empty() || shape.front() != 1) {
      return InvalidArgument(fmt::format(
          "output '{}' is {}: a step that other steps run for row by row takes one row at a time",
          whole.name, ToString(whole.shape)));
    }
    shape.erase(shape.begin());
  }
  if (shape.empty()) {
    return InvalidArgument(
        fmt::format("output '{}' is {}, which has no rows", whole.name, ToString(whole.shape)));
  }
  return shape;
}

}  // namespace

Expected<int> CountRowsOf(std::span<const OutputTensor> answer, bool batched) {
  constexpr std::int64_t kMostRows = 1 << 30;
  std::optional<std::int64_t> rows;
  for (const OutputTensor& output : answer) {
    const auto shape = RowsShape(output, batched);
    if (!shape) return std::unexpected(shape.error());
    if (rows && *rows != shape->front()) {
      return InvalidArgument(fmt::format("its outputs have {} rows and {} rows ('{}')", *rows,
                                         shape->front(), output.name));
    }
    rows = shape->front();
  }
  return static_cast<int>(std::clamp(rows.value_or(0), std::int64_t{0}, kMostRows));
}

Expected<OutputTensor> TakeRow(const OutputTensor& whole, std::size_t row, bool batched,
                               bool to_batch) {
  auto shape = RowsShape(whole, batched);
  if (!shape) return std::unexpected(shape.error());
  const auto rows = static_cast<std::size_t>(shape->front());
  if (row >= rows) return Internal(fmt::format("output '{}' has no row {}", whole.name, row));
  shape->erase(shape->begin());
  OutputTensor taken{whole.name, whole.type, *shape, {}};
  if (to_batch) taken.shape.insert(taken.shape.begin(), 1);
  if (whole.type == DataType::kBytes) {
    const std::int64_t each = ElementCount(*shape).value_or(0);
    if (!AppendElements(taken, whole, static_cast<std::int64_t>(row) * each, each)) {
      return Internal(fmt::format("output '{}' has fewer elements than its shape {}", whole.name,
                                  ToString(whole.shape)));
    }
    return taken;
  }
  const std::size_t each = BytesOf(whole) / rows;
  AppendBytes(taken, whole, row * each, each);
  return taken;
}

Expected<OutputTensor> PutTogether(std::span<const OutputTensor* const> rows, bool batched,
                                   const TensorSpec& made) {
  OutputTensor all{made.name, made.type, made.dims, {}};
  if (batched && !all.shape.empty()) all.shape.erase(all.shape.begin());
  std::ranges::replace_if(
      all.shape, [](std::int64_t dim) { return dim < 0; }, 0);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Shape shape = rows[r]->shape;
    if (batched) {
      if (shape.empty() || shape[0] != 1) {
        return Internal(
            fmt::format("output '{}' is {} for one row, where the first dimension "
                        "counts rows",
                        made.name, ToString(shape)));
      }
      shape.erase(shape.begin());
    }
    if (r > 0 && shape != all.shape) {
      return Internal(fmt::format("rows of output '{}' differ in shape, {} and {}", made.name,
                                  ToString(all.shape), ToString(shape)));
    }
    all.shape = std::move(shape);
    for (const auto& part : rows[r]->parts) AppendPart(all, part);
  }
  all.shape.insert(all.shape.begin(), static_cast<std::int64_t>(rows.size()));
  return all;
}

std::span<const std::byte> InOnePiece(const OutputTensor& tensor,
                                      std::vector<std::shared_ptr<const void>>& owners) {
  if (tensor.parts.empty()) return {};
  if (tensor.parts.size() == 1) return tensor.parts.front();
  auto joined = std::make_shared<std::vector<std::byte>>();
  joined->reserve(BytesOf(tensor));
  for (const auto& part : tensor.parts) joined->insert(joined->end(), part.begin(), part.end());
  owners.push_back(joined);
  return *joined;
}

}  // namespace tactus
