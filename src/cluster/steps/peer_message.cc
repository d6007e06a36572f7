#include "cluster/steps/peer_message.h"

#include <algorithm>
#include <string>
#include <utility>

#include "grpc_service.pb.h"
#include "service/step_group.h"

namespace tactus {
namespace {

constexpr int kShareOfWayBack = 8;

Expected<OutputTensor> OutputOf(const TensorSpec& spec,
                                const inference::ModelInferResponse& response) {
  const auto wrong = [&](const std::string& what) {
    return Internal("its answer: output '" + spec.name + "' " + what);
  };
  const int size = std::min(response.outputs_size(), response.raw_output_contents_size());
  for (int i = 0; i < size; ++i) {
    const auto& told = response.outputs(i);
    if (told.name() != spec.name) continue;
    OutputTensor tensor{
        .name = spec.name, .type = spec.type, .shape = {told.shape().begin(), told.shape().end()}};
    const std::span<const std::byte> bytes =
        std::as_bytes(std::span(response.raw_output_contents(i)));
    const auto elements = ElementCount(tensor.shape);
    if (told.datatype() != Name(spec.type)) return wrong("is of type " + told.datatype());
    const std::size_t each = ElementSize(spec.type);
    const bool fits =
        elements && (spec.type == DataType::kBytes
                         ? BytesPrefix(bytes, *elements) == bytes.size()
                         : bytes.size() == static_cast<std::size_t>(*elements) * each);
    if (!fits) return wrong("does not have the size of its shape");
    if (!bytes.empty()) tensor.parts.push_back(bytes);
    return tensor;
  }
  return wrong("is not in it");
}

template <class Values>
std::int64_t NumberIn(const Values& parameters, const char* name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? 0 : found->second.int64_param();
}

ServedBy ServedIn(const inference::ModelInferResponse& response) {
  const auto& parameters = response.parameters();
  ServedBy served{.outcome = Outcome::kMet};
  if (const auto exit = parameters.find("tactus_exit"); exit != parameters.end()) {
    served.exit = exit->second.string_param();
  }
  constexpr std::int64_t kMostRows = 1 << 20;
  served.batch = static_cast<int>(
      std::clamp<std::int64_t>(NumberIn(parameters, "tactus_batch_size"), 0, kMostRows));
  served.queue_us = std::max<std::int64_t>(0, NumberIn(parameters, "tactus_queue_us"));
  served.execution_us = std::max<std::int64_t>(0, NumberIn(parameters, "tactus_execution_us"));
  const auto emulated = parameters.find("tactus_emulated");
  served.emulated = emulated != parameters.end() && emulated->second.bool_param();
  return served;
}

template <class Tensors>
Expected<std::vector<TensorSpec>> TensorsIn(const Tensors& told) {
  std::vector<TensorSpec> tensors;
  for (const auto& each : told) {
    const auto type = ParseDataType(each.datatype());
    if (!type) return Internal("tensor '" + each.name() + "' is of type " + each.datatype());
    tensors.push_back({each.name(), *type, {each.shape().begin(), each.shape().end()}});
  }
  return tensors;
}

}  // namespace

void Put(const InferCall& call, Duration left, inference::ModelInferRequest& out) {
  out.set_model_name(call.model->name);
  auto& parameters = *out.mutable_parameters();
  parameters["tactus_step"].set_bool_param(true);
  // Where rows that are late are left out, it must say so while the answer can still come back.
  if (call.group != nullptr && call.group->leaves_out) left -= left / kShareOfWayBack;
  parameters["timeout"].set_int64_param(std::max<std::int64_t>(1, left / Micros(1)));
  if (call.group != nullptr) parameters["tactus_enter"].set_string_param(call.group->described);
  if (call.priority > 0) parameters["priority"].set_int64_param(call.priority);
  for (const InputTensor& each : call.inputs) {
    if (each.absent) continue;
    auto& input = *out.add_inputs();
    input.set_name(std::string(each.name));
    input.set_datatype(std::string(Name(each.type)));
    input.mutable_shape()->Assign(each.shape.begin(), each.shape.end());
    out.add_raw_input_contents(reinterpret_cast<const char*>(each.data.data()), each.data.size());
  }
  for (const int index : call.outputs) {
    out.add_outputs()->set_name(call.model->outputs[static_cast<std::size_t>(index)].name);
  }
}

Expected<InferReply> ReplyOf(const InferCall& call,
                             std::shared_ptr<const inference::ModelInferResponse> response) {
  struct Kept {
    std::shared_ptr<const inference::ModelInferResponse> response;
    std::shared_ptr<const ModelSpec> model;
  };
  InferReply reply;
  const auto add = [&](std::size_t index) -> Status {
    auto output = OutputOf(call.model->outputs[index], *response);
    if (!output) return std::unexpected(std::move(output.error()));
    reply.outputs.push_back(*std::move(output));
    return {};
  };
  std::vector<int> wanted = call.outputs;
  for (std::size_t i = 0; call.outputs.empty() && i < call.model->outputs.size(); ++i) {
    wanted.push_back(static_cast<int>(i));
  }
  for (const int index : wanted) {
    if (Status added = add(static_cast<std::size_t>(index)); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  reply.served = ServedIn(*response);
  reply.model = call.model;
  reply.storage = std::make_shared<Kept>(std::move(response), call.model);
  return reply;
}

Expected<ModelSpec> SpecOf(const inference::ModelMetadataResponse& metadata,
                           const inference::ModelConfigResponse& config) {
  ModelSpec spec{.name = metadata.name(),
                 .platform = metadata.platform(),
                 .max_batch = config.config().max_batch_size()};
  auto inputs = TensorsIn(metadata.inputs());
  if (!inputs) return std::unexpected(std::move(inputs.error()));
  auto outputs = TensorsIn(metadata.outputs());
  if (!outputs) return std::unexpected(std::move(outputs.error()));
  spec.inputs = *std::move(inputs);
  for (TensorSpec& input : spec.inputs) {
    const auto& declared = config.config().input();
    const auto same = [&](const auto& each) { return each.name() == input.name; };
    const auto found = std::find_if(declared.begin(), declared.end(), same);
    input.optional = found != declared.end() && found->optional();
  }
  spec.outputs = *std::move(outputs);
  for (std::vector<TensorSpec>* side : {&spec.inputs, &spec.outputs}) {
    for (TensorSpec& tensor : *side) {
      tensor.any_shape =
          config.config().parameters().contains(std::string(kAnyShapeKey) + tensor.name);
    }
  }
  const auto& parameters = config.config().parameters();
  if (parameters.contains("batch")) spec.assumed_batch = spec.max_batch;
  if (parameters.contains("batching_stopped")) {
    spec.batch_origin = BatchOrigin::kDisproved;
    spec.rows_in_front = true;
  }
  spec.exits = {{"elsewhere", {}, 0}};
  return spec;
}

}  // namespace tactus
