#include "load/inputs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/rng.h"
#include "workload/dataset.h"

namespace tactus {
namespace {

// Enough that a cache of answers would show, few enough to stay small beside the images.
constexpr std::uint32_t kRandomSamples = 16;

Expected<Shape> RequestShape(const std::string& model, const TensorSpec& input,
                             const std::map<std::string, Shape>& shapes) {
  Shape shape = input.dims;
  const auto given = shapes.find(input.name);
  if (given != shapes.end()) {
    // Aligned to the right: what is left over in front is the batch.
    if (given->second.size() > shape.size()) {
      return InvalidArgument(fmt::format("model '{}': input '{}' has {} dimensions, not {}", model,
                                         input.name, shape.size(), given->second.size()));
    }
    std::ranges::copy(given->second,
                      shape.end() - static_cast<std::ptrdiff_t>(given->second.size()));
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    if (i > 0) {
      return InvalidArgument(
          fmt::format("model '{}': input '{}' has the shape {}; say which with --shape {}=...",
                      model, input.name, ToString(input.dims), input.name));
    }
    shape[0] = 1;
  }
  return shape;
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
                                       const ImageSet* images,
                                       const std::map<std::string, Shape>& shapes,
                                       std::uint64_t seed) {
  PreparedInputs prepared;
  prepared.model = model;
  prepared.samples = kRandomSamples;
  Rng rng = Rng::Stream(seed, "inputs/" + model);
  for (const TensorSpec& input : inputs) {
    auto shape = RequestShape(model, input, shapes);
    if (!shape) return std::unexpected(shape.error());
    if (images != nullptr && TakesImage(inputs, *shape, *images)) {
      prepared.samples = images->samples;
      prepared.labels = images->labels;
      prepared.tensors.push_back({input.name, input.type, std::move(*shape),
                                  images->fp32->size() / images->samples, images->fp32});
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

}  // namespace tactus
