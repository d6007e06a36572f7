#include "server/kserve/classification.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tactus {
namespace {

// The bytes of the outputs that were replaced, and whatever the others lie in.
struct ClassStorage {
  std::shared_ptr<const void> before;
  std::vector<std::vector<std::byte>> tensors;
};

template <class T>
bool Higher(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  }
  return a > b;
}

// As std::to_string has it, which Triton uses: six places behind the point.
template <class T>
std::string ValueText(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return fmt::format("{:.6f}", value);
  } else {
    return fmt::format("{}", value);
  }
}

void AppendString(std::string_view text, std::vector<std::byte>& out) {
  const auto length = static_cast<std::uint32_t>(text.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(&length);
  out.insert(out.end(), bytes, bytes + sizeof length);
  bytes = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), bytes, bytes + text.size());
}

// One row's classes. `row` need not be aligned.
template <class T>
void AppendClasses(std::span<const std::byte> row, std::size_t count,
                   const std::vector<std::string>* labels, std::vector<std::byte>& out) {
  std::vector<T> values(row.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), row.data(), values.size() * sizeof(T));
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto first = order.begin();
  std::partial_sort(first, first + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      if (Higher(values[a], values[b])) return true;
                      return !Higher(values[b], values[a]) && a < b;
                    });
  for (std::size_t k = 0; k < count; ++k) {
    std::string text = fmt::format("{}:{}", ValueText(values[order[k]]), order[k]);
    if (labels != nullptr && order[k] < labels->size()) text += ":" + (*labels)[order[k]];
    AppendString(text, out);
  }
}

using Append = void (*)(std::span<const std::byte>, std::size_t, const std::vector<std::string>*,
                        std::vector<std::byte>&);

// Null for types that have no classes.
Append AppendOf(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return AppendClasses<std::uint8_t>;
    case DataType::kUint16:
      return AppendClasses<std::uint16_t>;
    case DataType::kUint32:
      return AppendClasses<std::uint32_t>;
    case DataType::kUint64:
      return AppendClasses<std::uint64_t>;
    case DataType::kInt8:
      return AppendClasses<std::int8_t>;
    case DataType::kInt16:
      return AppendClasses<std::int16_t>;
    case DataType::kInt32:
      return AppendClasses<std::int32_t>;
    case DataType::kInt64:
      return AppendClasses<std::int64_t>;
    case DataType::kFp32:
      return AppendClasses<float>;
    case DataType::kFp64:
      return AppendClasses<double>;
    case DataType::kBool:
    case DataType::kFp16:
    case DataType::kBf16:
    case DataType::kBytes:
      break;
  }
  return nullptr;
}

std::unexpected<Error> NoClasses(DataType type, std::string_view output) {
  return InvalidArgument(
      fmt::format("class result not available for output due to unsupported type '{}': '{}'",
                  Name(type), output));
}

std::vector<std::byte> Joined(const OutputTensor& output) {
  std::vector<std::byte> bytes;
  for (const auto part : output.parts) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

Expected<std::vector<std::byte>> ClassesOf(const ModelSpec& model, std::uint32_t most,
                                           OutputTensor& output) {
  const Append append = AppendOf(output.type);
  if (append == nullptr) return NoClasses(output.type, output.name);
  const bool by_row = (model.max_batch > 0 || model.rows_in_front) && !output.shape.empty();
  const std::int64_t rows = by_row ? output.shape[0] : 1;
  const std::vector<std::byte> bytes = Joined(output);
  const std::size_t row = rows > 0 ? bytes.size() / static_cast<std::size_t>(rows) : 0;
  const std::size_t elements = row / ElementSize(output.type);
  if (elements > static_cast<std::size_t>(kMostClasses)) {
    return InvalidArgument(
        fmt::format("classification output tensor too large: '{}' has {} elements a row, of which "
                    "there may be {}",
                    output.name, elements, kMostClasses));
  }
  const std::size_t count = std::min<std::size_t>(most, elements);
  const auto labels = model.labels.find(std::string(output.name));
  std::vector<std::byte> text;
  for (std::int64_t r = 0; r < rows; ++r) {
    append(std::span(bytes).subspan(static_cast<std::size_t>(r) * row, row), count,
           labels == model.labels.end() ? nullptr : &labels->second, text);
  }
  output.type = DataType::kBytes;
  output.shape = {static_cast<std::int64_t>(count)};
  if (by_row) output.shape.insert(output.shape.begin(), rows);
  return text;
}

}  // namespace

Status CheckClasses(const InferCall& call) {
  for (std::size_t i = 0; i < call.classes.size(); ++i) {
    const TensorSpec& output = call.model->outputs[static_cast<std::size_t>(call.outputs[i])];
    if (call.classes[i] == 0 || AppendOf(output.type) != nullptr) continue;
    return NoClasses(output.type, output.name);
  }
  return {};
}

Status Classify(std::span<const std::uint32_t> classes, InferReply& reply) {
  if (classes.empty() || !reply.status) return {};
  auto storage = std::make_shared<ClassStorage>();
  storage->before = std::move(reply.storage);
  storage->tensors.reserve(reply.outputs.size());
  for (std::size_t i = 0; i < std::min(classes.size(), reply.outputs.size()); ++i) {
    if (classes[i] == 0) continue;
    OutputTensor& output = reply.outputs[i];
    auto text = ClassesOf(*reply.model, classes[i], output);
    if (!text) return std::unexpected(std::move(text.error()));
    storage->tensors.push_back(*std::move(text));
    output.parts = {storage->tensors.back()};
  }
  reply.storage = std::move(storage);
  return {};
}

}  // namespace tactus
