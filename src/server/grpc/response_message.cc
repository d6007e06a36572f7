#include "server/grpc/response_message.h"

#include "server/kserve/validation.h"

namespace tactus {
namespace {

void SetDuration(inference::StatisticDuration* out, const DurationCount& in) {
  out->set_count(in.count);
  out->set_ns(in.ns);
}

void AddTensor(inference::ModelMetadataResponse::TensorMetadata* out, const TensorSpec& tensor) {
  out->set_name(tensor.name);
  out->set_datatype(std::string(Name(tensor.type)));
  out->mutable_shape()->Assign(tensor.dims.begin(), tensor.dims.end());
}

}  // namespace

void FillHead(const InferReply& reply, const std::string& id, inference::ModelInferResponse& head) {
  head.set_model_name(reply.model->name);
  head.set_model_version(std::to_string(reply.model->version));
  head.set_id(id);
  auto& parameters = *head.mutable_parameters();
  const ServedBy& served = reply.served;
  parameters[std::string(kParameterExit)].set_string_param(std::string(served.exit));
  parameters[std::string(kParameterBatch)].set_int64_param(served.batch);
  parameters[std::string(kParameterQueue)].set_int64_param(served.queue_us);
  parameters[std::string(kParameterExecution)].set_int64_param(served.execution_us);
  if (served.emulated) parameters[std::string(kParameterEmulated)].set_bool_param(true);
  for (const OutputTensor& output : reply.outputs) {
    auto* tensor = head.add_outputs();
    tensor->set_name(std::string(output.name));
    tensor->set_datatype(std::string(Name(output.type)));
    tensor->mutable_shape()->Assign(output.shape.begin(), output.shape.end());
  }
}

inference::ModelMetadataResponse MetadataOf(const ModelSpec& model,
                                            const std::vector<ModelState>& index) {
  inference::ModelMetadataResponse response;
  response.set_name(model.name);
  for (const ModelState& state : index) {
    if (state.name == model.name && state.state == "READY") {
      response.add_versions(std::to_string(state.version));
    }
  }
  response.set_platform(model.platform);
  for (const TensorSpec& input : model.inputs) AddTensor(response.add_inputs(), input);
  for (const TensorSpec& output : model.outputs) AddTensor(response.add_outputs(), output);
  for (const auto& [key, value] : model.parameters) (*response.mutable_properties())[key] = value;
  return response;
}

inference::ModelStatisticsResponse StatisticsOf(const std::vector<ModelStatistics>& models) {
  inference::ModelStatisticsResponse response;
  for (const ModelStatistics& model : models) {
    auto* out = response.add_model_stats();
    out->set_name(model.name);
    out->set_version(std::to_string(model.version));
    out->set_emulated(model.emulated);
    out->set_last_inference(model.last_inference_ms);
    out->set_inference_count(model.inference_count);
    out->set_execution_count(model.execution_count);
    auto* stats = out->mutable_inference_stats();
    SetDuration(stats->mutable_success(), model.success);
    SetDuration(stats->mutable_fail(), model.fail);
    SetDuration(stats->mutable_queue(), model.queue);
    SetDuration(stats->mutable_compute_input(), model.compute_input);
    SetDuration(stats->mutable_compute_infer(), model.compute_infer);
    SetDuration(stats->mutable_compute_output(), model.compute_output);
    // There is no response cache; clients read the fields all the same.
    stats->mutable_cache_hit();
    stats->mutable_cache_miss();
    for (const ModelStatistics::BatchSize& batch : model.batches) {
      auto* size = out->add_batch_stats();
      size->set_batch_size(batch.batch_size);
      SetDuration(size->mutable_compute_input(), batch.compute_input);
      SetDuration(size->mutable_compute_infer(), batch.compute_infer);
      SetDuration(size->mutable_compute_output(), batch.compute_output);
    }
  }
  return response;
}

inference::RepositoryIndexResponse IndexOf(const std::vector<ModelState>& index, bool ready_only) {
  inference::RepositoryIndexResponse response;
  for (const ModelState& state : index) {
    if (ready_only && state.state != "READY") continue;
    auto* model = response.add_models();
    model->set_name(state.name);
    model->set_version(std::to_string(state.version));
    model->set_state(state.state);
    model->set_reason(state.reason);
  }
  return response;
}

}  // namespace tactus
