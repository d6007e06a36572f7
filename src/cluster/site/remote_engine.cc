#include "cluster/site/remote_engine.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "base/underway.h"
#include "cluster/tls/channel.h"
#include "grpc_service.grpc.pb.h"

namespace tactus {
namespace {

using Stub = inference::GRPCInferenceService::Stub;

// A worker answers or its connection breaks; this is for one that does neither.
constexpr auto kGiveUp = std::chrono::seconds(60);
constexpr int kMostMessage = 1 << 30;

// All rows of the job as the inputs of one call.
void PutInputs(const ModelSpec& spec, const BatchJob& job, inference::ModelInferRequest& request) {
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const TensorView& first = job.rows.front().inputs[i];
    if (first.absent) continue;
    inference::ModelInferRequest::InferInputTensor& input = *request.add_inputs();
    input.set_name(spec.inputs[i].name);
    input.set_datatype(std::string(Name(spec.inputs[i].type)));
    for (const std::int64_t dim : first.shape) input.add_shape(dim);
    if (spec.max_batch > 0) input.set_shape(0, static_cast<std::int64_t>(job.rows.size()));
    std::string& bytes = *request.add_raw_input_contents();
    bytes.reserve(first.bytes * job.rows.size());
    for (const RowInputs& row : job.rows) {
      const TensorView& view = row.inputs[i];
      bytes.append(reinterpret_cast<const char*>(view.data), view.bytes);
    }
  }
}

// The parts of `data` that hold `elements` strings each; nothing where they do not add up.
std::optional<std::vector<std::span<const std::byte>>> BytesRows(std::span<const std::byte> data,
                                                                 std::int64_t elements,
                                                                 std::size_t rows) {
  std::vector<std::span<const std::byte>> parts;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto bytes = BytesPrefix(data, elements);
    if (!bytes) return std::nullopt;
    parts.push_back(data.first(*bytes));
    data = data.subspan(*bytes);
  }
  if (!data.empty()) return std::nullopt;
  return parts;
}

Expected<BatchOutput::Tensor> TensorOf(const TensorSpec& spec, bool batched, std::size_t rows,
                                       const inference::ModelInferResponse& response, int at) {
  const auto wrong = [&](const std::string& what) {
    return Internal("a worker's answer: output '" + spec.name + "' " + what);
  };
  if (at < 0 || at >= response.raw_output_contents_size()) return wrong("is not in it");
  const std::string& bytes = response.raw_output_contents(at);
  const auto& dims = response.outputs(at).shape();
  BatchOutput::Tensor tensor{{dims.begin(), dims.end()}, std::as_bytes(std::span(bytes)), {}};
  const auto elements = ElementCount(tensor.shape);
  if (!elements ||
      (batched && (tensor.shape.empty() || tensor.shape[0] != static_cast<std::int64_t>(rows)))) {
    return wrong("has not as many rows as were sent");
  }
  if (spec.type == DataType::kBytes) {
    const std::size_t parts = batched ? rows : 1;
    auto split = BytesRows(tensor.data, *elements / static_cast<std::int64_t>(parts), parts);
    if (!split) return wrong("has strings that run past its end");
    tensor.rows = *std::move(split);
  } else if (tensor.data.size() != static_cast<std::size_t>(*elements) * ElementSize(spec.type)) {
    return wrong("does not have the size of its shape");
  }
  return tensor;
}

Expected<std::shared_ptr<const BatchOutput>> OutputOf(
    const ModelSpec& spec, std::size_t rows,
    std::shared_ptr<inference::ModelInferResponse> response) {
  auto output = std::make_shared<BatchOutput>();
  for (const TensorSpec& each : spec.outputs) {
    int at = -1;
    for (int i = 0; i < response->outputs_size(); ++i) {
      if (response->outputs(i).name() == each.name) at = i;
    }
    auto tensor = TensorOf(each, spec.max_batch > 0, rows, *response, at);
    if (!tensor) return std::unexpected(tensor.error());
    output->tensors.push_back(*std::move(tensor));
  }
  output->storage = std::move(response);
  return output;
}

BatchResult Lost(std::string why) {
  BatchResult result;
  result.status = Fail(ErrorCode::kUnavailable, std::move(why));
  result.lane_lost = true;
  return result;
}

// The worker is out of reach, has unloaded the model or has no room: others may serve it.
bool RunsElsewhere(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::NOT_FOUND ||
         code == grpc::StatusCode::RESOURCE_EXHAUSTED;
}

}  // namespace

struct RemoteEngine::Body {
  struct Call {
    grpc::ClientContext context;
    inference::ModelInferRequest request;
    std::shared_ptr<inference::ModelInferResponse> response =
        std::make_shared<inference::ModelInferResponse>();
    std::shared_ptr<Stub> stub;
    std::shared_ptr<const ModelSpec> spec;
    WorkerPlace worker;
    std::atomic<bool> left{false};  // the worker has left the site
    BatchId batch;
    std::size_t rows = 0;
    Completions* completions = nullptr;
  };
  struct Worker {
    WorkerPlace place;
    std::shared_ptr<Stub> stub;
  };

  Body(GrantBook& grants, PeerTls with, bool made_up, int most)
      : book(grants), tls(std::move(with)), emulated(made_up), slots(most) {}

  void OnDone(Call* call, const grpc::Status& status);

  GrantBook& book;
  const PeerTls tls;
  const bool emulated;
  const int slots;
  std::mutex mutex;
  std::map<std::uint32_t, Worker> workers;  // by slot
  std::unordered_map<std::uint64_t, std::shared_ptr<const ModelSpec>> models;
  std::uint64_t next_handle = 1;
  Underway<Call> calls;
};

RemoteEngine::RemoteEngine(GrantBook& book, PeerTls tls, bool emulated, int slots)
    : body_(std::make_unique<Body>(book, std::move(tls), emulated, slots)) {}

RemoteEngine::~RemoteEngine() {
  for (const auto& call : body_->calls.all()) call->context.TryCancel();
  body_->calls.Wait();
}

void RemoteEngine::SetWorkers(const std::vector<WorkerPlace>& workers) {
  const std::lock_guard lock(body_->mutex);
  std::map<std::uint32_t, Body::Worker> now;
  for (const WorkerPlace& place : workers) {
    const auto known = body_->workers.find(place.worker);
    if (known != body_->workers.end() && known->second.place == place) {
      now[place.worker] = known->second;
      continue;
    }
    now[place.worker] = {place, inference::GRPCInferenceService::NewStub(ChannelTo(
                                    place.address, {.tls = body_->tls,
                                                    .node = std::string(NodeOfWorker(place.name)),
                                                    .most_message = kMostMessage}))};
  }
  body_->workers = std::move(now);
  // Whoever has left answers nobody, however long its connection lasts.
  for (const auto& call : body_->calls.all()) {
    const auto place = body_->workers.find(call->worker.worker);
    if (place != body_->workers.end() && place->second.place == call->worker) continue;
    call->left.store(true);
    call->context.TryCancel();
  }
}

EngineTraits RemoteEngine::traits() const {
  return {.name = "remote",
          .emulated = body_->emulated,
          .terminates = true,
          .deferred = true,
          .runs_apart = false,  // nobody has granted the rows alone; the worker runs them apart
          .max_slots = body_->slots};
}

Expected<ModelHandle> RemoteEngine::Load(ModelSpec& spec, const LaneSpec&) {
  const std::lock_guard lock(body_->mutex);
  const std::uint64_t handle = body_->next_handle++;
  body_->models[handle] = std::make_shared<const ModelSpec>(spec);
  return ModelHandle{handle};
}

void RemoteEngine::Unload(ModelHandle handle) {
  const std::lock_guard lock(body_->mutex);
  body_->models.erase(handle.value);
}

void RemoteEngine::Submit(ModelHandle handle, const BatchJob& job,
                          Completions& completions) noexcept {
  const auto launched = body_->book.TakeLaunched(job.id);
  if (!launched) {
    BatchResult result;
    result.status = Internal("internal: batch has no grant");
    return completions.Done(job.id, std::move(result));
  }
  auto call = std::make_shared<Body::Call>();
  {
    const std::lock_guard lock(body_->mutex);
    const auto worker = body_->workers.find(launched->worker);
    const auto spec = body_->models.find(handle.value);
    if (worker != body_->workers.end() && spec != body_->models.end()) {
      call->stub = worker->second.stub;
      call->worker = worker->second.place;
      call->spec = spec->second;
    }
  }
  if (call->stub == nullptr) return completions.Done(job.id, Lost("its worker has left the site"));
  call->batch = job.id;
  call->rows = job.rows.size();
  call->completions = &completions;
  call->request.set_model_name(call->spec->name);
  (*call->request.mutable_parameters())["tactus_granted"].set_string_param(
      std::to_string(launched->key.term) + "." + std::to_string(launched->key.batch) + "." +
      std::to_string(launched->exit.value()) + "." + std::to_string(launched->rows));
  PutInputs(*call->spec, job, call->request);
  call->context.set_deadline(std::chrono::system_clock::now() + kGiveUp);
  body_->calls.Add(call);
  Body::Call* const sent = call.get();
  sent->stub->async()->ModelInfer(
      &sent->context, &sent->request, sent->response.get(),
      [this, sent](const grpc::Status& status) { body_->OnDone(sent, status); });
}

void RemoteEngine::Body::OnDone(Call* call, const grpc::Status& status) {
  BatchResult result;
  if (!status.ok() && (call->left.load() || RunsElsewhere(status.error_code()))) {
    result = Lost("worker '" + call->worker.name + "': " + status.error_message());
  } else if (!status.ok()) {
    result.status = Fail(ErrorCodeOf(status.error_code()),
                         "worker '" + call->worker.name + "': " + status.error_message());
  } else if (auto output = OutputOf(*call->spec, call->rows, std::move(call->response))) {
    result.output = *std::move(output);
  } else {
    result.status = std::unexpected(output.error());
  }
  call->completions->Done(call->batch, std::move(result));
  calls.End(call);
}

void RemoteEngine::Terminate(BatchId batch) noexcept {
  for (const auto& call : body_->calls.all()) {
    if (call->batch == batch) call->context.TryCancel();
  }
}

}  // namespace tactus
