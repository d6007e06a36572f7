#include "server/kserve/json_codec.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/append.h"
#include "server/kserve/json_text.h"

namespace tactus {
namespace {

// Fills the one open dimension, if there is one, from the number of elements.
Expected<Shape> RawShape(const ModelSpec& model, const TensorSpec& input, std::size_t bytes) {
  Shape shape = input.dims;
  if (model.max_batch > 0 && !shape.empty()) shape[0] = 1;
  // The body is one element, whatever its length.
  const bool one = std::ranges::all_of(shape, [](std::int64_t dim) { return dim == 1; });
  if (input.type == DataType::kBytes && !one) {
    return InvalidArgument(
        fmt::format("For BYTE datatype raw input '{}', the model must have input shape [1]; that "
                    "of model '{}' is {}",
                    input.name, model.name, ToString(input.dims)));
  }
  const auto open = std::find(shape.begin(), shape.end(), std::int64_t{-1});
  if (open == shape.end()) return shape;
  if (std::find(open + 1, shape.end(), std::int64_t{-1}) != shape.end()) {
    return InvalidArgument(
        fmt::format("The shape of the raw input '{}' can not be deduced because there are more "
                    "than one variable-sized dimension in model '{}'",
                    input.name, model.name));
  }
  *open = 1;
  const std::optional<std::int64_t> fixed = ElementCount(shape);
  const std::size_t element = std::max<std::size_t>(ElementSize(input.type), 1);
  if (fixed && *fixed > 0) *open = static_cast<std::int64_t>(bytes / element) / *fixed;
  return shape;
}

// The body as one BYTES element.
std::shared_ptr<std::vector<std::byte>> WithLength(std::span<const std::byte> body) {
  auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(std::uint32_t) + body.size());
  const auto length = static_cast<std::uint32_t>(body.size());
  std::memcpy(bytes->data(), &length, sizeof length);
  std::copy(body.begin(), body.end(), bytes->begin() + sizeof length);
  return bytes;
}

void AppendShape(std::string& out, std::span<const std::int64_t> shape) { out += ToString(shape); }

void AppendServedBy(std::string& out, const ServedBy& served) {
  AppendAll(out, R"(,"parameters":{")", kParameterExit, R"(":)");
  AppendJsonString(out, served.exit);
  AppendAll(out, R"(,")", kParameterBatch, R"(":)", served.batch);
  AppendAll(out, R"(,")", kParameterQueue, R"(":)", served.queue_us);
  AppendAll(out, R"(,")", kParameterExecution, R"(":)", served.execution_us);
  if (served.emulated) AppendAll(out, R"(,")", kParameterEmulated, R"(":true)");
  out += '}';
}

std::size_t SizeOf(const OutputTensor& output) {
  std::size_t size = 0;
  for (const auto part : output.parts) size += part.size();
  return size;
}

bool AppendData(std::string& out, const OutputTensor& output) {
  out += R"(,"data":[)";
  bool first = true;
  for (const auto part : output.parts) {
    if (part.empty()) continue;
    if (!first) out += ',';
    first = false;
    if (!AppendJsonElements(out, output.type, part)) return false;
  }
  out += ']';
  return true;
}

std::unexpected<Error> NoJsonForm(std::string_view output, std::string_view why) {
  return InvalidArgument(fmt::format("output '{}' {}: ask for it with binary_data", output, why));
}

}  // namespace

Expected<InferRequest> RawInferRequest(const ModelSpec& model, std::span<const std::byte> body,
                                       std::shared_ptr<const void> owner) {
  if (model.inputs.size() != 1) {
    return InvalidArgument(
        fmt::format("Raw request must only have 1 input (found 1) to be deduced but got {} inputs "
                    "in '{}' model configuration",
                    model.inputs.size(), model.name));
  }
  const TensorSpec& input = model.inputs[0];
  auto shape = RawShape(model, input, body.size());
  if (!shape) return std::unexpected(shape.error());
  InferRequest request;
  request.form.binary = true;
  request.message.inputs.push_back(
      {.name = input.name, .datatype = Name(input.type), .shape = std::move(*shape), .data = body});
  request.keepalive = std::move(owner);
  if (input.type == DataType::kBytes) {
    auto bytes = WithLength(body);
    request.message.inputs[0].data = *bytes;
    request.keepalive = std::move(bytes);
  }
  return request;
}

Status CheckForm(const InferCall& call, const ResponseForm& form) {
  const std::vector<TensorSpec>& outputs = call.model->outputs;
  const std::size_t count = call.outputs.empty() ? outputs.size() : call.outputs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const TensorSpec& output =
        outputs[call.outputs.empty() ? i : static_cast<std::size_t>(call.outputs[i])];
    const bool has_form = output.type != DataType::kFp16 && output.type != DataType::kBf16;
    if (has_form || form.Binary(i)) continue;
    return NoJsonForm(output.name, fmt::format("is {}, which has no JSON form", Name(output.type)));
  }
  return {};
}

Expected<EncodedResponse> EncodeInferResponse(const InferReply& reply, const ResponseForm& form) {
  EncodedResponse response;
  std::string& json = response.json;
  json.reserve(512);
  json += R"({"model_name":)";
  AppendJsonString(json, reply.model->name);
  AppendAll(json, R"(,"model_version":")", reply.model->version, R"(")");
  if (!form.id.empty()) {
    json += R"(,"id":)";
    AppendJsonString(json, form.id);
  }
  AppendServedBy(json, reply.served);
  json += R"(,"outputs":[)";
  for (std::size_t i = 0; i < reply.outputs.size(); ++i) {
    const OutputTensor& output = reply.outputs[i];
    if (i > 0) json += ',';
    json += R"({"name":)";
    AppendJsonString(json, output.name);
    AppendAll(json, R"(,"datatype":")", Name(output.type), R"(","shape":)");
    AppendShape(json, output.shape);
    if (form.Binary(i)) {
      const std::size_t size = SizeOf(output);
      AppendAll(json, R"(,"parameters":{"binary_data_size":)", size, "}");
      response.binary.insert(response.binary.end(), output.parts.begin(), output.parts.end());
      response.binary_bytes += size;
      response.has_binary = true;
    } else if (!AppendData(json, output)) {
      return NoJsonForm(output.name, "holds bytes that are not UTF-8 text");
    }
    json += '}';
  }
  json += "]}";
  return response;
}

}  // namespace tactus
