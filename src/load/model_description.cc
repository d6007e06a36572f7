#include "load/model_description.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kProfileShapeKey = "profile_shape.";  // in front of an input's name

Expected<std::vector<TensorSpec>> TensorsIn(const Json& list) {
  std::vector<TensorSpec> tensors;
  if (!list.is_array()) return InvalidArgument("the model's metadata lists no tensors");
  for (const Json& item : list) {
    TensorSpec tensor;
    tensor.name = item.value("name", "");
    const std::string datatype = item.value("datatype", "");
    const auto type = ParseDataType(datatype);
    if (!type || !item.contains("shape") || !item["shape"].is_array()) {
      return InvalidArgument(
          fmt::format("tensor '{}' has the datatype '{}' or no shape", tensor.name, datatype));
    }
    tensor.type = *type;
    for (const Json& dim : item["shape"]) {
      // Some servers write dimensions as strings.
      tensor.dims.push_back(dim.is_number() ? dim.get<std::int64_t>() : -1);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// "3,48,160"; nothing where that is no list of sizes.
std::optional<Shape> SizesIn(std::string_view text) {
  Shape sizes;
  for (const auto part : std::views::split(text, ',')) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size() || size < 1) return std::nullopt;
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

Expected<DescribedModel> ReadDescription(const std::string& model, const std::string& metadata,
                                         const std::string& config) {
  const Json said = Json::parse(metadata);
  const Json configured = Json::parse(config);
  if (!said.is_object() || !configured.is_object()) {
    return InvalidArgument(fmt::format(
        "what the server says of '{}' is no JSON object: is it one of KServe v2?", model));
  }
  DescribedModel served;
  served.model.name = model;
  auto inputs = TensorsIn(said.value("inputs", Json()));
  if (!inputs) return std::unexpected(inputs.error());
  auto outputs = TensorsIn(said.value("outputs", Json()));
  if (!outputs) return std::unexpected(outputs.error());
  served.inputs = std::move(*inputs);
  served.outputs = std::move(*outputs);
  served.emulated = said.value("platform", "") == "emulated";
  served.model.max_batch = configured.value("max_batch_size", 0);
  const Json parameters = configured.value("parameters", Json());
  for (const auto& [key, value] : parameters.items()) {
    if (!value.is_object()) continue;
    const std::string text = value.value("string_value", "");
    ApplyParameter(served.model, key, text);
    if (!key.starts_with(kProfileShapeKey)) continue;
    auto sizes = SizesIn(text);
    if (sizes) served.sizes.emplace(key.substr(kProfileShapeKey.size()), *std::move(sizes));
  }
  return served;
}

}  // namespace tactus
