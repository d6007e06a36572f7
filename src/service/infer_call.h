// An inference call and its reply, as they pass between a front end and a service. Tensors are
// views: no bytes are copied.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"
#include "core/request.h"
#include "core/tensor.h"
#include "service/deadline.h"
#include "service/trace_parent.h"

namespace tactus {

// An input tensor of a call: `data` points into what `InferCall::keepalive` owns.
struct InputTensor {
  std::string_view name;
  DataType type = DataType::kFp32;
  Shape shape;
  std::span<const std::byte> data;
  bool absent = false;  // the call leaves it out, as TensorSpec::optional allows
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

// Adds bytes to the tensor's end, joined to its last part where they are neighbours in memory.
void AppendPart(OutputTensor& tensor, std::span<const std::byte> bytes);

struct InferReply {
  Status status;  // on error nothing but `served` is set
  std::vector<OutputTensor> outputs;
  std::shared_ptr<const void> storage;  // keeps names and bytes alive
  ServedBy served;
  std::shared_ptr<const ModelSpec> model;
  bool refused = false;  // inside Infer: it entered no queue, and no observer hears of its end
};

using CallId = std::uint64_t;

// The rows of a call are a part of a batch that a central scheduler granted
// (docs/reference/site.md): they run together with the batch's other parts, and with nothing else.
struct GrantedPart {
  std::uint64_t term = 0;   // of the scheduler
  std::uint64_t batch = 0;  // its number for the batch
  std::uint32_t exit = 0;
  std::uint32_t rows = 0;  // of the whole batch

  bool operator==(const GrantedPart&) const = default;
};

// Which step of which ensemble makes a call; both live as long as the ensemble, which the call's
// `reply` keeps.
struct StepName {
  std::string_view pipeline;
  std::string_view step;
};

struct StepGroup;  // service/step_group.h

// A run of a step of an ensemble's call that has ended.
struct StepRun {
  std::string step;
  std::chrono::steady_clock::time_point began, ended;
  Outcome outcome = Outcome::kMet;
  int batch = 0;  // 0: it was in none
  std::int64_t queue_us = 0;
  std::string exit;  // empty: none served it
};

struct InferCall {
  std::shared_ptr<const ModelSpec> model;  // from Find
  std::vector<InputTensor> inputs;         // in the order of model->inputs, checked against it
  std::shared_ptr<const void> keepalive;   // owns the bytes until the reply
  std::vector<int> outputs;                // indices into model->outputs; empty: all
  // By entry of `outputs`: how many classes the front end makes of it, 0 none; empty: of none. A
  // service answers with the tensor.
  std::vector<std::uint32_t> classes;
  // The client's name for the call, of `keepalive` or of what `reply` holds; or empty.
  std::string_view id;
  std::optional<TraceParent> trace_parent;
  // For who traces an ensemble's call: its runs, in the order of their ends, by the time of the
  // reply. Null: nobody does.
  std::shared_ptr<std::vector<StepRun>> step_runs;
  std::chrono::steady_clock::time_point received;
  TimeLimit limit;  // what clients and proxies allow; see DeadlineOf
  // How long the answer takes from the service to the client, as far as the server can tell: by so
  // much it is due earlier (DeadlineOf).
  Duration way{};
  bool due_by_limit = false;   // the model's own SLO does not hold: of an ensemble's steps
  std::uint32_t priority = 0;  // 0: the model's default
  // Something of it ran already: it is a later step of an ensemble's call, or what failed as a part
  // of a batch. Answers that are held do not refuse it.
  bool begun = false;
  std::optional<GrantedPart> granted;
  std::optional<StepName> step;  // of an ensemble's steps: whose; nothing: a client's call
  std::shared_ptr<const StepGroup> group;  // where it is several steps as one; null: it is not
  // Called exactly once, on a service's thread or inside an Infer, this call's or another's; must
  // be quick and must not throw. Do not hold across Infer a lock that a reply takes.
  std::function<void(InferReply&&)> reply;
};

// Bytes of all input tensors together.
std::size_t InputBytes(const InferCall& call);
// Bytes of all output tensors together.
std::size_t OutputBytes(const InferReply& reply);

}  // namespace tactus
