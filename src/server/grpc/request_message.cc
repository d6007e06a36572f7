#include "server/grpc/request_message.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "server/grpc/typed_contents.h"
#include "server/kserve/classification.h"
#include "server/kserve/validation.h"

namespace tactus {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;

// What a call's input spans point into.
struct Received {
  std::shared_ptr<const InferMessage> message;
  ConvertedBytes converted;
};

Expected<ParameterValue> ValueOf(const std::string& name, const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return parameter.bool_param();
    case InferParameter::kInt64Param:
      return std::int64_t{parameter.int64_param()};
    case InferParameter::kUint64Param:
      return std::uint64_t{parameter.uint64_param()};
    case InferParameter::kDoubleParam:
      return parameter.double_param();
    case InferParameter::kStringParam:
      return std::string_view(parameter.string_param());
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return InvalidArgument(fmt::format("parameter '{}' has no value", name));
}

// Parameters of one tensor ask for extensions that are not served.
template <class Tensor>
Status CheckTensorParameters(const char* kind, const Tensor& tensor) {
  for (const auto& [key, value] : tensor.parameters()) {
    if (key.starts_with("shared_memory_")) {
      return Fail(ErrorCode::kUnimplemented,
                  fmt::format("{} '{}': shared memory is not supported", kind, tensor.name()));
    }
  }
  return {};
}

Expected<std::uint32_t> ClassesOf(const ModelInferRequest::InferRequestedOutputTensor& output) {
  const auto found = output.parameters().find("classification");
  if (found == output.parameters().end()) return 0;
  const std::int64_t count = found->second.int64_param();
  if (found->second.has_int64_param() && count >= 0) {
    return static_cast<std::uint32_t>(std::min(count, kMostClasses));
  }
  return InvalidArgument(fmt::format(
      "output '{}': 'classification' must be a whole number, not below 0", output.name()));
}

Expected<std::span<const std::byte>> BytesOf(const InferMessage& message, int i,
                                             ConvertedBytes& converted) {
  const auto& input = message.head.inputs(i);
  if (message.raw.empty()) return TypedBytes(input, converted);
  if (input.has_contents()) {
    return InvalidArgument(
        fmt::format("contents field must not be specified when using raw_input_contents for '{}' "
                    "for model '{}'",
                    input.name(), message.head.model_name()));
  }
  // As many as there are inputs, once all of them have been looked at.
  const auto at = static_cast<std::size_t>(i);
  return at < message.raw.size() ? message.raw[at] : std::span<const std::byte>();
}

Status AddInputs(Received& received, CallMessage& call) {
  const ModelInferRequest& message = received.message->head;
  call.inputs.reserve(static_cast<std::size_t>(message.inputs_size()));
  for (int i = 0; i < message.inputs_size(); ++i) {
    const auto& input = message.inputs(i);
    if (Status known = CheckTensorParameters("input", input); !known) return known;
    auto bytes = BytesOf(*received.message, i, received.converted);
    if (!bytes) return std::unexpected(std::move(bytes.error()));
    call.inputs.push_back({.name = input.name(),
                           .datatype = input.datatype(),
                           .shape = Shape(input.shape().begin(), input.shape().end()),
                           .data = *bytes});
  }
  const std::size_t raw = received.message->raw.size();
  if (raw == 0 || raw == static_cast<std::size_t>(message.inputs_size())) return {};
  return InvalidArgument(
      fmt::format("raw_input_contents has {} entries for {} inputs: it must have one for each", raw,
                  message.inputs_size()));
}

}  // namespace

Expected<InferCall> CallFrom(const InferenceService& service,
                             std::shared_ptr<const InferMessage> message,
                             std::chrono::steady_clock::time_point received, bool takes_granted,
                             bool takes_entered) {
  const ModelInferRequest& head = message->head;
  const auto version = ParseVersion(head.model_version());
  if (!version) return std::unexpected(version.error());
  const auto entered = head.parameters().find("tactus_enter");
  auto model = takes_entered && entered != head.parameters().end()
                   ? service.Enter(entered->second.string_param())
                   : service.Find(head.model_name(), *version);
  if (!model) return std::unexpected(std::move(model.error()));

  auto owner = std::make_shared<Received>();
  owner->message = std::move(message);
  CallMessage call{.takes_granted = takes_granted};
  if (Status added = AddInputs(*owner, call); !added) {
    return std::unexpected(std::move(added.error()));
  }
  for (const auto& output : head.outputs()) {
    if (Status known = CheckTensorParameters("output", output); !known) {
      return std::unexpected(std::move(known.error()));
    }
    const auto classes = ClassesOf(output);
    if (!classes) return std::unexpected(classes.error());
    call.outputs.push_back(output.name());
    call.classes.push_back(*classes);
  }
  for (const auto& [name, parameter] : head.parameters()) {
    auto value = ValueOf(name, parameter);
    if (!value) return std::unexpected(std::move(value.error()));
    call.parameters.emplace_back(name, *value);
  }
  auto made = MakeCall(std::move(*model), call, received);
  if (!made) return made;
  made->id = head.id();
  made->keepalive = std::move(owner);
  return made;
}

}  // namespace tactus
