// What front ends (HTTP, gRPC, the in-process driver) see of the runtime: hand in a call, get one
// reply. Thread-safe and non-blocking; front ends own their threads, the runtime owns its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "core/request.h"

namespace tactus {

// An input tensor of a call: `data` points into what `InferCall::keepalive` owns.
struct InputTensor {
  std::string_view name;
  DataType type = DataType::kFp32;
  Shape shape;
  std::span<const std::byte> data;
};

// How a call was served; front ends put it into the response's parameters.
struct ServedBy {
  Outcome outcome = Outcome::kMet;
  std::string_view exit;      // the shallowest exit that served a row; empty when none did
  int batch = 0;              // size of the (last) batch it ran in
  std::int64_t queue_us = 0;  // arrival to start of execution
  std::int64_t execution_us = 0;
  bool emulated = false;  // times come from a profile, outputs are made up
};

struct OutputTensor {
  std::string_view name;  // the model's; lives as long as the reply
  DataType type = DataType::kFp32;
  Shape shape;
  // Rows in order: usually one span into the batch's output, one for each batch if the call was
  // split. Their lengths add up to the tensor.
  std::vector<std::span<const std::byte>> parts;
};

struct InferReply {
  Status status;  // on error nothing but `served` is set
  std::vector<OutputTensor> outputs;
  std::shared_ptr<const void> storage;  // keeps names and bytes alive
  ServedBy served;
  std::shared_ptr<const ModelSpec> model;
  bool refused = false;  // inside Infer: it entered no queue, and no observer hears of its end
};

using CallId = std::uint64_t;

struct InferCall {
  std::shared_ptr<const ModelSpec> model;  // from Find
  std::vector<InputTensor> inputs;         // in the order of model->inputs, checked against it
  std::shared_ptr<const void> keepalive;   // owns the bytes until the reply
  std::vector<int> outputs;                // indices into model->outputs; empty: all
  std::chrono::steady_clock::time_point received;
  std::optional<std::chrono::steady_clock::time_point> deadline;  // the client's, if any
  std::uint32_t priority = 0;                                     // 0: the model's default
  // Called exactly once, on a runtime thread or inside an Infer, this call's or another's; must be
  // quick and must not throw. Do not hold across Infer a lock that a reply takes.
  std::function<void(InferReply&&)> reply;
};

// Counters of the statistics extension, by model version; cumulative, nanoseconds.
struct DurationCount {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
};
struct ModelStatistics {
  std::string name;
  std::int64_t version = 1;
  bool emulated = false;                // see ServedBy
  std::uint64_t last_inference_ms = 0;  // Unix time
  std::uint64_t inference_count = 0;    // rows
  std::uint64_t execution_count = 0;    // batches
  DurationCount success, fail, queue, compute_input, compute_infer, compute_output;
  struct BatchSize {
    std::uint64_t batch_size = 0;
    DurationCount compute_input, compute_infer, compute_output;
  };
  std::vector<BatchSize> batches;
};

struct ModelState {
  std::string name;
  std::int64_t version = 1;
  std::string state;   // READY, LOADING, UNLOADING, UNAVAILABLE
  std::string reason;  // why it is unavailable
};

class InferenceService {
 public:
  virtual ~InferenceService() = default;

  // The ready model, or NotFound / Unavailable with the text for the client. `version` < 0: latest.
  virtual Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                          std::int64_t version) const = 0;
  // Takes the call; replies exactly once. The id is good for Cancel until then.
  virtual CallId Infer(InferCall&& call) = 0;
  // The client left: frees its place in the queue. The reply still comes, with kCancelled.
  virtual void Cancel(CallId call) = 0;

  virtual bool Live() const = 0;
  virtual bool Ready() const = 0;  // every model that should serve does
  virtual std::vector<ModelState> Index() const = 0;
  // Blocking: call them from a thread that may wait (seconds), never from an I/O thread.
  // `config` is a ModelConfig as JSON that replaces the folder's, or empty.
  virtual Status Load(const std::string& model, const std::string& config) = 0;
  virtual Status Unload(const std::string& model) = 0;
  // Empty name: all models. Version < 0: all versions.
  virtual Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                            std::int64_t version) const = 0;
};

}  // namespace tactus
