#include "engines/onnxruntime/batch_tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "engines/onnxruntime/graph.h"

namespace tactus {
namespace {

bool Aligned(const std::byte* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

// Whether row k's bytes begin where those of row k - 1 end.
bool Adjacent(std::span<const RowInputs> rows, std::size_t i) {
  for (std::size_t k = 1; k < rows.size(); ++k) {
    const TensorView& before = rows[k - 1].inputs[i];
    if (rows[k].inputs[i].data != before.data + before.bytes) return false;
  }
  return true;
}

std::uint32_t ReadLength(const std::byte* at) {
  std::uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | std::to_integer<std::uint32_t>(at[i]);
  return length;
}

void AppendLength(std::vector<std::byte>& out, std::size_t length) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(length >> (8 * i) & 0xff));
}

// Copies the strings of one row into elements [first, first + count) of a string tensor.
Status FillStrings(Ort::Value& value, const TensorSpec& spec, const TensorView& row,
                   std::size_t first, std::size_t count) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (row.bytes - at < 4 || row.bytes - at - 4 < ReadLength(row.data + at)) {
      return InvalidArgument(
          fmt::format("input '{}': element {} of {} ends beyond the tensor", spec.name, i, count));
    }
    const std::size_t length = ReadLength(row.data + at);
    char* text = value.GetResizedStringTensorElementBuffer(first + i, length);
    if (length > 0) std::memcpy(text, row.data + at + 4, length);
    at += 4 + length;
  }
  if (at == row.bytes) return {};
  return InvalidArgument(
      fmt::format("input '{}': {} bytes follow its {} elements", spec.name, row.bytes - at, count));
}

struct OutputStorage {
  std::shared_ptr<const void> graph;  // released last: it owns the allocator
  std::vector<Ort::Value> values;
  std::vector<std::vector<std::byte>> copies;
};

std::span<const std::byte> BytesOf(const Ort::Value& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  const DataType type = FromOnnx(info.GetElementType()).value();
  if (type == DataType::kBytes) return {};
  return {static_cast<const std::byte*>(value.GetTensorRawData()),
          info.GetElementCount() * ElementSize(type)};
}

// Where an output of the graph is one of its inputs too, ONNX Runtime gives the memory that it was
// given. That is the caller's, and holds another's numbers soon.
bool LieIn(std::span<const Ort::Value> inputs, std::span<const std::byte> output) {
  return std::ranges::any_of(inputs, [&](const Ort::Value& input) {
    const std::span<const std::byte> bytes = BytesOf(input);
    const std::less<> before;
    return !before(output.data(), bytes.data()) &&
           before(output.data(), bytes.data() + bytes.size());
  });
}

BatchOutput::Tensor EncodeStrings(const Ort::Value& value, Shape shape, std::size_t count,
                                  std::size_t rows, std::vector<std::byte>& out) {
  BatchOutput::Tensor tensor{.shape = std::move(shape)};
  // Exactly the bytes needed, so that the rows' spans stay good.
  out.reserve(value.GetStringTensorDataLength() + 4 * count);
  std::size_t row_begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = value.GetStringTensorElement(i);
    AppendLength(out, text.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    out.insert(out.end(), bytes, bytes + text.size());
    if ((i + 1) % (count / rows) != 0) continue;
    tensor.rows.push_back({out.data() + row_begin, out.size() - row_begin});
    row_begin = out.size();
  }
  tensor.rows.resize(rows);  // a tensor without elements has empty rows
  tensor.data = out;
  return tensor;
}

}  // namespace

Status BatchInputs::Gather(std::span<const TensorSpec> specs, bool batches,
                           std::span<const RowInputs> rows) {
  values_.clear();
  names_.clear();
  LookAtBuffers();
  buffers_.resize(specs.size());
  if (!batches && rows.size() != 1) {
    return InvalidArgument("a model without a batch dimension runs one request at a time");
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const bool absent = rows[0].inputs[i].absent;
    const std::span<const std::int64_t> shape = rows[0].inputs[i].shape;
    for (const RowInputs& row : rows) {
      if (row.inputs[i].absent != absent) {
        return InvalidArgument(fmt::format(
            "input '{}': rows with it and without it cannot share a batch", specs[i].name));
      }
      if (std::ranges::equal(row.inputs[i].shape, shape)) continue;
      return InvalidArgument(
          fmt::format("input '{}': rows of shapes {} and {} cannot share a batch", specs[i].name,
                      ToString(shape), ToString(row.inputs[i].shape)));
    }
    if (absent) continue;
    names_.push_back(specs[i].name.c_str());
    shape_.assign(shape.begin(), shape.end());
    if (specs[i].reshape) {
      if (!FitsDims(shape, specs[i].dims)) {
        return InvalidArgument(fmt::format("input '{}' has shape {}, which is none of {}",
                                           specs[i].name, ToString(shape),
                                           ToString(specs[i].dims)));
      }
      shape_ = Reshaped(shape, specs[i].dims, *specs[i].reshape);
    }
    const Status ok = specs[i].type == DataType::kBytes ? GatherStrings(specs[i], i, rows)
                                                        : GatherNumbers(specs[i], i, rows);
    if (!ok) return ok;
  }
  return {};
}

std::size_t BatchInputs::kept() const {
  std::size_t sum = 0;
  for (const auto& buffer : buffers_) sum += buffer.capacity();
  return sum;
}

void BatchInputs::LookAtBuffers() {
  constexpr int kBatches = 64;
  constexpr std::size_t kAlwaysKept = std::size_t{1} << 20;
  most_ = std::max(most_, std::exchange(copied_, 0));
  if (++looked_ < kBatches) return;
  if (kept() > std::max(kAlwaysKept, 4 * most_)) buffers_.clear();
  looked_ = 0;
  most_ = 0;
}

Status BatchInputs::GatherNumbers(const TensorSpec& spec, std::size_t i,
                                  std::span<const RowInputs> rows) {
  const std::size_t element = ElementSize(spec.type);
  const auto count = ElementCount(shape_);
  const std::size_t row_bytes = count.value_or(0) * element;
  for (const RowInputs& row : rows) {
    if (count && row.inputs[i].bytes == row_bytes) continue;
    return InvalidArgument(fmt::format("input '{}' has {} bytes, but {} {} has {}", spec.name,
                                       row.inputs[i].bytes, Name(spec.type), ToString(shape_),
                                       row_bytes));
  }
  if (rows.size() > 1) shape_[0] = static_cast<std::int64_t>(rows.size());
  const std::byte* data = rows[0].inputs[i].data;
  const std::size_t total = row_bytes * rows.size();
  if (total == 0 || !Aligned(data, element) || !Adjacent(rows, i)) {
    std::vector<std::byte>& buffer = buffers_[i];
    copied_ += total;
    if (buffer.size() < total || buffer.empty()) buffer.resize(std::max<std::size_t>(total, 1));
    for (std::size_t k = 0; k < rows.size() && row_bytes > 0; ++k) {
      std::memcpy(buffer.data() + k * row_bytes, rows[k].inputs[i].data, row_bytes);
    }
    data = buffer.data();
  }
  static const Ort::MemoryInfo kHost =
      Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeCPU);
  // ONNX Runtime does not write to inputs; its interface merely lacks the const.
  values_.push_back(Ort::Value::CreateTensor(kHost, const_cast<std::byte*>(data), total,
                                             shape_.data(), shape_.size(), ToOnnx(spec.type)));
  return {};
}

Status BatchInputs::GatherStrings(const TensorSpec& spec, std::size_t i,
                                  std::span<const RowInputs> rows) {
  const auto count = ElementCount(shape_);
  // Each element takes at least the four bytes of its length, so this bounds what is allocated.
  if (!count || rows[0].inputs[i].bytes / 4 < static_cast<std::size_t>(*count)) {
    return InvalidArgument(
        fmt::format("input '{}' has too few bytes for {} strings", spec.name, ToString(shape_)));
  }
  if (rows.size() > 1) shape_[0] = static_cast<std::int64_t>(rows.size());
  Ort::AllocatorWithDefaultOptions allocator;
  Ort::Value value = Ort::Value::CreateTensor(allocator, shape_.data(), shape_.size(),
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Status ok = FillStrings(value, spec, rows[k].inputs[i], k * *count, *count);
    if (!ok) return ok;
  }
  values_.push_back(std::move(value));
  return {};
}

bool HaveRows(std::span<const Ort::Value> values, std::size_t rows) {
  return std::ranges::all_of(values, [rows](const Ort::Value& value) {
    const Shape shape = value.GetTensorTypeAndShapeInfo().GetShape();
    return !shape.empty() && shape[0] == static_cast<std::int64_t>(rows);
  });
}

Expected<std::shared_ptr<const BatchOutput>> Scatter(std::vector<Ort::Value>&& values,
                                                     std::span<const Ort::Value> inputs,
                                                     std::span<const TensorSpec> specs,
                                                     bool batches, std::size_t rows,
                                                     std::shared_ptr<const void> graph) {
  auto storage = std::make_shared<OutputStorage>();
  storage->graph = std::move(graph);
  storage->values = std::move(values);
  storage->copies.resize(storage->values.size());
  auto output = std::make_shared<BatchOutput>();
  for (std::size_t i = 0; i < storage->values.size(); ++i) {
    const Ort::Value& value = storage->values[i];
    const auto info = value.GetTensorTypeAndShapeInfo();
    Shape shape = info.GetShape();
    if (batches && (shape.empty() || shape[0] != static_cast<std::int64_t>(rows))) {
      return Internal(
          fmt::format("output {} has shape {} for a batch of {}; a model that batches "
                      "gives one row for each of its inputs",
                      i, ToString(shape), rows));
    }
    // What is stated as [1], for a scalar, goes as it comes if it is none: a graph may declare
    // another rank than it gives.
    const bool scalar = specs[i].reshape && specs[i].reshape->empty();
    if (specs[i].reshape && !(scalar && !shape.empty())) {
      if (!FitsDims(shape, *specs[i].reshape)) {
        return Internal(fmt::format("output '{}' has shape {}, which its reshape {} does not allow",
                                    specs[i].name, ToString(shape), ToString(*specs[i].reshape)));
      }
      shape = Reshaped(shape, *specs[i].reshape, specs[i].dims);
    }
    const std::size_t count = info.GetElementCount();
    const DataType type = FromOnnx(info.GetElementType()).value();
    if (type == DataType::kBytes) {
      output->tensors.push_back(
          EncodeStrings(value, std::move(shape), count, rows, storage->copies[i]));
      continue;
    }
    std::span<const std::byte> data = BytesOf(value);
    if (LieIn(inputs, data)) {
      storage->copies[i].assign(data.begin(), data.end());
      data = storage->copies[i];
    }
    output->tensors.push_back({std::move(shape), data});
  }
  output->storage = std::move(storage);
  return output;
}

}  // namespace tactus
