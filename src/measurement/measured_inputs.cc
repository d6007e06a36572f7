#include "measurement/measured_inputs.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/rng.h"
#include "workload/dataset.h"

namespace tactus {
namespace {

bool TakesImages(const ModelSpec& spec) {
  return spec.inputs.size() == 1 && spec.inputs[0].type == DataType::kFp32 && spec.max_batch > 0 &&
         spec.inputs[0].dims == Shape{-1, 1, 28, 28};
}

// Numbers that a network may meet, so that its arithmetic takes no short cut.
void FillWithNoise(std::span<std::byte> bytes, std::uint64_t seed, const std::string& name) {
  Rng rng = Rng::Stream(seed, "inputs/" + name);
  for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    const auto value = static_cast<float>(rng.Normal());
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

}  // namespace

Expected<MeasuredInputs> MeasuredInputs::Make(const ModelSpec& spec, std::uint64_t seed) {
  MeasuredInputs made;
  for (const TensorSpec& tensor : spec.inputs) {
    if (ElementSize(tensor.type) == 0) {
      return InvalidArgument(
          fmt::format("model '{}': input '{}' takes strings, which measure "
                      "cannot make up",
                      spec.name, tensor.name));
    }
    Input input{tensor.name, tensor.type, tensor.dims, made.row_bytes_, 0};
    for (std::int64_t& dim : input.shape) dim = std::max<std::int64_t>(dim, 1);
    const auto elements = ElementCount(input.shape);
    if (!elements) return InvalidArgument(fmt::format("input '{}' is too large", tensor.name));
    input.bytes = static_cast<std::size_t>(*elements) * ElementSize(tensor.type);
    made.row_bytes_ += input.bytes;
    made.inputs_.push_back(std::move(input));
  }
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const auto images = TakesImages(spec) ? LoadFashionMnistTest()
                                        : Expected<LabelledImages>(NotFound("no images fit"));
  if (images) {
    const std::vector<float> pixels = Normalise(*images);
    bytes->resize(pixels.size() * sizeof(float));
    std::memcpy(bytes->data(), pixels.data(), bytes->size());
    made.rows_ = static_cast<std::size_t>(images->count);
    made.labels_ = images->labels;
  } else {
    bytes->resize(made.row_bytes_);
    for (const Input& input : made.inputs_) {
      if (input.type != DataType::kFp32) continue;
      FillWithNoise(std::span(*bytes).subspan(input.offset, input.bytes), seed, spec.name);
    }
  }
  made.bytes_ = std::move(bytes);
  return made;
}

std::vector<InputTensor> MeasuredInputs::Row(std::uint64_t k) const {
  const std::size_t start = (k % rows_) * row_bytes_;
  std::vector<InputTensor> row;
  row.reserve(inputs_.size());
  for (const Input& input : inputs_) {
    row.push_back({input.name, input.type, input.shape,
                   std::span(*bytes_).subspan(start + input.offset, input.bytes)});
  }
  return row;
}

std::int8_t MeasuredInputs::Correct(std::uint64_t k, const InferReply& reply) const {
  if (labels_.empty() || !reply.status || reply.outputs.empty()) return -1;
  if (reply.outputs[0].parts.size() != 1) return -1;
  return ArgMax(reply.outputs[0].parts[0]) == labels_[k % rows_] ? 1 : 0;
}

}  // namespace tactus
