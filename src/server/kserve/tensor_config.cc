#include "server/kserve/tensor_config.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/kserve/config_fields.h"

namespace tactus {
namespace {

using google::protobuf::RepeatedField;

// A tensor's dims or reshape.shape, with the batch dimension in front where there is one; the error
// is why not.
Expected<Shape> ReadDims(const RepeatedField<std::int64_t>& dims, bool batches,
                         std::string_view field) {
  Shape read;
  if (batches) read.push_back(-1);
  for (const std::int64_t dim : dims) {
    if (dim < -1 || dim == 0) {
      return InvalidArgument(fmt::format("{}: {} is neither a size nor -1", field, dim));
    }
    read.push_back(dim);
  }
  Shape fixed = read;
  std::replace(fixed.begin(), fixed.end(), std::int64_t{-1}, std::int64_t{1});
  if (!ElementCount(fixed)) {
    return InvalidArgument(fmt::format("{}: their product is too large", field));
  }
  return read;
}

// Why a model of this platform can have no reshape; empty: it can.
std::string_view ReshapeRefusal(const inference::ModelConfig& config) {
  if (IsEnsemble(config)) {
    return "reshape: an ensemble has no graph of its own; state it in the configuration of the "
           "step's model";
  }
  if (PlatformOf(config) == kOperatorPlatform) {
    return "reshape: operators take tensors as they are sent; state these dims and no reshape";
  }
  return {};
}

// `dims` and the result with the batch dimension.
Expected<Shape> ReadReshape(const DeclaredConfig& config, const inference::ModelTensorReshape& from,
                            const Shape& dims) {
  const inference::ModelConfig& message = config.message();
  if (const auto refusal = ReshapeRefusal(message); !refusal.empty()) {
    return InvalidArgument(std::string(refusal));
  }
  const bool batches = message.max_batch_size() > 0;
  auto reshape = ReadDims(from.shape(), batches, "reshape");
  if (!reshape || SameElements(dims, *reshape)) return reshape;
  const auto sizes = [&](const Shape& shape) {
    return ToString(std::span(shape).subspan(batches));
  };
  const auto open = [&](const Shape& shape) {
    return std::count(shape.begin() + (batches ? 1 : 0), shape.end(), std::int64_t{-1});
  };
  if (open(dims) != open(*reshape)) {
    return InvalidArgument(
        fmt::format("reshape: {} has {} of -1, and dims {} has {}; state as many in both",
                    sizes(*reshape), open(*reshape), sizes(dims), open(dims)));
  }
  return InvalidArgument(fmt::format(
      "reshape: {} does not have as many elements as dims {}; make the products of "
      "their sizes equal{}",
      sizes(*reshape), sizes(dims), open(dims) > 0 ? " before, between and behind the -1" : ""));
}

// Whether a parameter says that the tensor has any shape; then its dims state nothing.
Expected<bool> ReadAnyShape(const DeclaredConfig& config, const TensorSpec& spec) {
  const inference::ModelConfig& message = config.message();
  const std::string key = std::string(kAnyShapeKey) + spec.name;
  const auto found = message.parameters().find(key);
  if (found == message.parameters().end() || !MayHaveAnyShape(message)) return false;
  if (found->second.string_value() != "true") {
    return config.WrongParameter(key, "must be true; leave it out where the dims hold");
  }
  if (message.max_batch_size() > 0 || spec.dims != Shape{-1} || spec.reshape) {
    return config.WrongParameter(
        key, fmt::format("where any shape will do, state `dims: [ -1 ]` for '{}', no reshape, and "
                         "max_batch_size 0",
                         spec.name));
  }
  return true;
}

// ModelInput or ModelOutput, which differ in what Tactus does not use.
template <class Tensor>
Expected<TensorSpec> ReadTensor(const DeclaredConfig& config, const Tensor& tensor,
                                std::string_view field, int index) {
  const auto wrong = [&](std::string_view why) {
    return config.Wrong(field, fmt::format("'{}': {}", tensor.name(), why), index);
  };
  if (tensor.name().empty()) return config.Wrong(field, "a tensor needs a name", index);
  const std::optional<DataType> type = FromWire(tensor.data_type());
  if (!type) return wrong("data_type is missing");
  if (tensor.dims().empty()) return wrong("dims is missing; of a scalar write dims: [ 1 ]");
  auto dims = ReadDims(tensor.dims(), config.message().max_batch_size() > 0, "dims");
  if (!dims) return wrong(dims.error().message);
  TensorSpec spec{.name = tensor.name(), .type = *type, .dims = *std::move(dims)};
  if (tensor.has_reshape()) {
    auto reshape = ReadReshape(config, tensor.reshape(), spec.dims);
    if (!reshape) return wrong(reshape.error().message);
    if (*reshape != spec.dims) spec.reshape = *std::move(reshape);
  }
  const Expected<bool> any = ReadAnyShape(config, spec);
  if (!any) return std::unexpected(any.error());
  spec.any_shape = *any;
  return spec;
}

template <class Tensors>
Expected<std::vector<TensorSpec>> ReadTensors(const DeclaredConfig& config, const Tensors& tensors,
                                              std::string_view field) {
  std::vector<TensorSpec> specs;
  std::set<std::string_view> names;
  for (int i = 0; i < tensors.size(); ++i) {
    auto spec = ReadTensor(config, tensors[i], field, i);
    if (!spec) return std::unexpected(spec.error());
    if (!names.insert(tensors[i].name()).second) {
      return config.Wrong(field, fmt::format("'{}' is declared twice", spec->name), i);
    }
    specs.push_back(std::move(*spec));
  }
  return specs;
}

}  // namespace

Expected<std::vector<TensorSpec>> ReadInputs(const DeclaredConfig& config) {
  const inference::ModelConfig& message = config.message();
  auto specs = ReadTensors(config, message.input(), "input");
  if (!specs) return specs;
  bool required = false;
  for (int i = 0; i < message.input_size(); ++i) {
    TensorSpec& spec = (*specs)[static_cast<std::size_t>(i)];
    spec.optional = message.input(i).optional();
    required = required || !spec.optional;
    if (!spec.optional || !IsEnsemble(message)) continue;
    return config.Wrong(
        "input",
        fmt::format("'{}': optional: an ensemble passes on all of its inputs; remove it, or leave "
                    "the input out here and in the steps' input_map: their models take defaults",
                    spec.name),
        i);
  }
  if (required || message.max_batch_size() == 0 || specs->empty()) return specs;
  return config.Wrong("input",
                      "optional: all inputs are, and with max_batch_size above 0 one must say how "
                      "many rows a request has; make one of them required, or max_batch_size 0",
                      0);
}

Expected<std::vector<TensorSpec>> ReadOutputs(const DeclaredConfig& config) {
  return ReadTensors(config, config.message().output(), "output");
}

}  // namespace tactus
