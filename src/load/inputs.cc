#include "load/inputs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/rng.h"
#include "base/whole_file.h"
#include "workload/dataset.h"

namespace tactus {
namespace {

// Enough that a cache of answers would show, few enough to stay small beside the images.
constexpr std::uint32_t kRandomSamples = 16;

// The tensor's dimensions with those that `shapes` states; others may be dynamic still.
Expected<Shape> StatedShape(const std::string& model, const TensorSpec& input,
                            const std::map<std::string, Shape>& shapes) {
  Shape shape = input.dims;
  const auto given = shapes.find(input.name);
  if (given == shapes.end()) return shape;
  // A server writes [-1] too where any shape will do, however many dimensions it has.
  if (shape == Shape{-1}) return given->second;
  // Aligned to the right: what is left over in front is the batch.
  if (given->second.size() > shape.size()) {
    return InvalidArgument(
        fmt::format("model '{}': --shape gives input '{}' {} dimensions, but it is {}", model,
                    input.name, given->second.size(), ToString(input.dims)));
  }
  const std::size_t batch = shape.size() - given->second.size();
  for (std::size_t i = batch; i < shape.size(); ++i) {
    const std::int64_t size = given->second[i - batch];
    if (shape[i] >= 0 && shape[i] != size) {
      return InvalidArgument(
          fmt::format("model '{}': --shape gives dimension {} of input '{}' the size {}, but the "
                      "input is {}",
                      model, i, input.name, size, ToString(input.dims)));
    }
    shape[i] = size;
  }
  return shape;
}

Expected<Shape> RequestShape(const std::string& model, const TensorSpec& input,
                             const InputChoice& choice) {
  const bool chosen = choice.shapes.contains(input.name);
  auto shape = StatedShape(model, input, chosen ? choice.shapes : choice.sizes);
  if (!shape) return shape;
  for (std::size_t i = 0; i < shape->size(); ++i) {
    if ((*shape)[i] >= 0) continue;
    if (i > 0) {
      return InvalidArgument(fmt::format(
          "model '{}': input '{}' has the open shape {}; give its sizes with --shape {}=...", model,
          input.name, ToString(input.dims), input.name));
    }
    (*shape)[0] = 1;
  }
  return shape;
}

// The one element of a BYTES tensor: its length and the bytes.
std::vector<std::byte> ElementOf(std::span<const std::byte> bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::vector<std::byte> element(sizeof length + bytes.size());
  std::memcpy(element.data(), &length, sizeof length);
  std::ranges::copy(bytes, element.begin() + sizeof length);
  return element;
}

Expected<PreparedTensor> FileTensor(const std::string& model, const TensorSpec& input,
                                    const std::map<std::string, Shape>& shapes,
                                    const std::filesystem::path& path) {
  auto text = ReadWhole(path, "input");
  if (!text) return std::unexpected(text.error());
  const auto bytes = std::as_bytes(std::span(*text));
  auto shape = StatedShape(model, input, shapes);
  if (!shape) return std::unexpected(shape.error());
  const std::size_t size = ElementSize(input.type);
  const bool strings = size == 0;
  std::int64_t left = strings ? 1 : static_cast<std::int64_t>(bytes.size() / size);
  for (const std::int64_t dim : *shape) {
    if (dim > 0) left /= dim;
  }
  // From the right, so that the batch gets what is left over: one, unless it is the only one.
  for (auto dim = shape->rbegin(); dim != shape->rend(); ++dim) {
    if (*dim < 0) *dim = std::exchange(left, 1);
  }
  const auto elements = ElementCount(*shape);
  const bool fills = strings ? elements == 1 : elements && *elements * size == bytes.size();
  if (!fills || bytes.empty()) {
    return InvalidArgument(fmt::format(
        "{}: {} bytes do not fill input '{}' of model '{}', {} {}; state dimensions with --shape",
        path.string(), bytes.size(), input.name, model, Name(input.type), ToString(input.dims)));
  }
  auto data = std::make_shared<std::vector<std::byte>>(
      strings ? ElementOf(bytes) : std::vector<std::byte>(bytes.begin(), bytes.end()));
  return PreparedTensor{input.name, input.type, *std::move(shape), data->size(), data};
}

bool TakesImage(std::span<const TensorSpec> inputs, const Shape& shape, const ImageSet& images) {
  if (inputs.size() != 1 || inputs[0].type != DataType::kFp32) return false;
  return shape.size() == images.image.size() + 1 && shape[0] == 1 &&
         std::equal(images.image.begin(), images.image.end(), shape.begin() + 1);
}

void AppendFloat(std::vector<std::byte>& out, float value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// Small magnitudes of every type: ids stay inside vocabularies, floats look like normalised data.
std::vector<std::byte> RandomBytes(DataType type, std::int64_t elements, Rng& rng) {
  std::vector<std::byte> out;
  const std::size_t size = ElementSize(type);
  for (std::int64_t i = 0; i < elements; ++i) {
    if (type == DataType::kFp32) {
      AppendFloat(out, static_cast<float>(rng.Uniform() * 2 - 1));
    } else if (type == DataType::kBytes) {
      const std::uint32_t length = 4;
      const auto* bytes = reinterpret_cast<const std::byte*>(&length);
      out.insert(out.end(), bytes, bytes + sizeof length);
      for (int c = 0; c < 4; ++c) out.push_back(static_cast<std::byte>('a' + rng.Below(26)));
    } else {
      // Integers 0 or 1; zero bits are a valid value of the half-width floats and of FP64 too.
      const bool integer =
          type != DataType::kFp64 && type != DataType::kFp16 && type != DataType::kBf16;
      out.push_back(static_cast<std::byte>(integer ? rng.Below(2) : 0));
      out.insert(out.end(), size - 1, std::byte{0});
    }
  }
  return out;
}

PreparedTensor RandomTensor(const TensorSpec& input, Shape shape, std::int64_t elements, Rng& rng) {
  auto data = std::make_shared<std::vector<std::byte>>();
  for (std::uint32_t i = 0; i < kRandomSamples; ++i) {
    const auto sample = RandomBytes(input.type, elements, rng);
    data->insert(data->end(), sample.begin(), sample.end());
  }
  return {input.name, input.type, std::move(shape), data->size() / kRandomSamples, data};
}

}  // namespace

Expected<ImageSet> LoadTestImages() {
  auto set = LoadFashionMnistTest();
  if (!set) return std::unexpected(set.error());
  const auto values = Normalise(*set);
  const auto bytes = std::as_bytes(std::span(values));
  ImageSet images;
  images.samples = static_cast<std::uint32_t>(set->count);
  images.image = {1, set->rows, set->columns};
  images.fp32 = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  images.labels = std::make_shared<std::vector<std::uint8_t>>(std::move(set->labels));
  return images;
}

Expected<PreparedInputs> PrepareInputs(const std::string& model, std::span<const TensorSpec> inputs,
                                       const InputChoice& choice, std::uint64_t seed) {
  PreparedInputs prepared;
  prepared.model = model;
  prepared.samples = kRandomSamples;
  Rng rng = Rng::Stream(seed, "inputs/" + model);
  for (const TensorSpec& input : inputs) {
    if (const auto file = choice.files.find(input.name); file != choice.files.end()) {
      auto tensor = FileTensor(model, input, choice.shapes, file->second);
      if (!tensor) return std::unexpected(tensor.error());
      prepared.samples = 1;
      prepared.tensors.push_back(*std::move(tensor));
      continue;
    }
    auto shape = RequestShape(model, input, choice);
    if (!shape) return std::unexpected(shape.error());
    if (choice.images != nullptr && TakesImage(inputs, *shape, *choice.images)) {
      prepared.samples = choice.images->samples;
      prepared.labels = choice.images->labels;
      prepared.tensors.push_back({input.name, input.type, std::move(*shape),
                                  choice.images->fp32->size() / choice.images->samples,
                                  choice.images->fp32});
      return prepared;
    }
    const auto elements = ElementCount(*shape);
    if (!elements) {
      return InvalidArgument(fmt::format("model '{}': input '{}' is too large", model, input.name));
    }
    prepared.tensors.push_back(RandomTensor(input, std::move(*shape), *elements, rng));
  }
  return prepared;
}

Status CheckUsed(const InputChoice& choice, std::span<const PreparedInputs> prepared) {
  const auto unused = [&](const std::string& name) {
    return std::ranges::none_of(prepared, [&](const PreparedInputs& inputs) {
      return std::ranges::find(inputs.tensors, name, &PreparedTensor::name) != inputs.tensors.end();
    });
  };
  for (const auto& [name, file] : choice.files) {
    if (!unused(name)) continue;
    return InvalidArgument(
        fmt::format("{} is for input '{}', which no model here has", file.string(), name));
  }
  for (const auto& [name, shape] : choice.shapes) {
    if (!unused(name)) continue;
    return InvalidArgument(
        fmt::format("--shape {}=...: no model here has an input '{}'", name, name));
  }
  return {};
}

}  // namespace tactus
