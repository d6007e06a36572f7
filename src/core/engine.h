// An engine runs batches on one device. The runtime owns its threads: a lane worker calls Submit,
// and the engine answers through Completions exactly once for each batch, at once or later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/held_bytes.h"
#include "base/ids.h"
#include "base/serving_time.h"
#include "core/batch.h"
#include "core/device_facts.h"
#include "core/model_spec.h"
#include "core/plan.h"
#include "core/tensor.h"

namespace tactus {

struct EngineTraits {
  std::string name;         // "onnxruntime 1.30.0"
  bool emulated = false;    // true: answers are made up; shown wherever its figures are shown
  bool terminates = false;  // Terminate can stop a batch that runs
  // Submit returns at once, and Done comes later, on a thread of the engine's: a lane needs none.
  bool deferred = false;
  // A failed batch may be submitted again, call by call, to find the one that made it fail.
  bool runs_apart = true;
  // It runs in processes of its own, which may die. A model is first tried in a process without
  // other models (kTrialProcess), then loaded on the lanes.
  bool isolated = false;
  // Its models are graphs that say too little of themselves: whether their first dimension is a
  // batch is tried as they are loaded (profiling/model_trial.h).
  bool tries = false;
  int max_slots = 1;                                 // batches at once in one lane
  std::optional<DeviceFacts> device = std::nullopt;  // that it runs on; none: the processor
};

struct ModelHandle {
  std::uint64_t value = 0;
};

// One request's input tensors, in the order of ModelSpec::inputs; one row each, batch dimension 1
// (or the whole tensor where max_batch is 0). Kept alive by the caller until Done.
struct TensorView {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::span<const std::int64_t> shape;
  bool absent = false;  // an optional input that the request leaves out: the model's default
};
// BYTES tensors are, element by element, a little-endian u32 length and that many bytes.
struct RowInputs {
  std::span<const TensorView> inputs;
  // Owns the inputs' bytes. An engine that answers with the very bytes of a request keeps a copy of
  // it beyond Done; null: the bytes go away at Done.
  std::shared_ptr<const void> owner;
};

// The rows have equal shapes and leave out the same inputs.
struct BatchJob {
  BatchId id;
  ModelId model;
  ExitId exit;
  std::span<const RowInputs> rows;
};

// Output tensors of a batch.
struct BatchOutput {
  struct Tensor {
    Shape shape;  // of the whole batch
    std::span<const std::byte> data;
    // Set for BYTES only, whose rows differ in length: each row's part of `data`.
    std::vector<std::span<const std::byte>> rows = {};

    // Row `i` of a batch of `count`: fixed-size types divide `data` into equal parts.
    std::span<const std::byte> Row(std::size_t i, std::size_t count) const {
      if (!rows.empty()) return rows[i];
      const std::size_t size = data.size() / count;
      return data.subspan(i * size, size);
    }
  };
  std::vector<Tensor> tensors;    // in the order of ModelSpec::outputs
  std::shared_ptr<void> storage;  // what `data` points into
  // JPEGs among the inputs that lacked the bytes that end them, and were decoded all the same.
  std::uint32_t cut_jpegs = 0;
  // Where whoever submitted the batch counts the bytes that are held; no engine sets it.
  mutable HeldBytes held;

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Tensor& tensor : tensors) sum += tensor.data.size();
    return sum;
  }
};

// The times of a batch on a device other than the processor, by the device's own clock. Waiting
// there is not included.
struct DeviceTimes {
  Duration upload{};  // of its input, to the device
  Duration kernels{};
  Duration download{};  // of its answer

  bool operator==(const DeviceTimes&) const = default;
};

struct BatchResult {
  Status status;                              // kCancelled after Terminate
  std::shared_ptr<const BatchOutput> output;  // null on error
  Duration gather{};                          // making the batch's input
  Duration infer{};
  Duration scatter{};
  std::optional<DeviceTimes> device = std::nullopt;  // parts of these three; none: on the processor
  // With an error: the lane died under the batch, and runs nothing until it is loaded again. The
  // requests are not answered: other lanes run them, or this one when it is back.
  bool lane_lost = false;
  // With lane_lost: the lane died under this batch, perhaps because of it. The batch's calls run
  // one by one from then on, and a request under which the lane dies again is refused.
  bool suspect = false;
  // With an error: an output has not one row for each of the batch's. No row's content is to blame,
  // so nothing is run again.
  bool misshapen = false;
};

class Completions {
 public:
  virtual ~Completions() = default;
  virtual void Done(BatchId, BatchResult&&) noexcept = 0;
};

// The memory of a loaded model, as far as its engine can tell.
struct MemoryUse {
  std::uint64_t weight_bytes = 0;
  std::uint64_t peak_bytes = 0;  // the most that its runs had in use at once; 0: unknown
};

// Memory that a model's runs left with an allocator which keeps it for the next ones.
struct ArenaUse {
  std::string model;
  std::int64_t version = 1;
  std::uint64_t bytes = 0;         // that it took of the system, weights included
  std::uint64_t in_use_bytes = 0;  // of these
};

// What one kernel of a batch did, whatever time it took.
struct KernelWork {
  double operations = 0;        // additions and multiplications of numbers
  double weight_bytes = 0;      // constants of the graph that it read
  double activation_bytes = 0;  // other inputs that it read, and what it wrote
};
using BatchWork = std::vector<KernelWork>;  // in the order in which they ran

// One input of a row to measure a model with.
struct SampleTensor {
  Shape shape;
  std::vector<std::byte> bytes;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineTraits traits() const = 0;
  // Completes spec.inputs and spec.outputs from the graphs where they are empty, and checks them
  // where they are not. May take seconds. Thread-safe.
  virtual Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) = 0;
  // Batches in flight end first; the handle is dead afterwards. Thread-safe.
  virtual void Unload(ModelHandle) = 0;
  // Called by one thread at a time for each lane slot.
  virtual void Submit(ModelHandle, const BatchJob&, Completions&) noexcept = 0;
  // Best effort, from any thread; the batch still reports, with kCancelled if it was stopped.
  virtual void Terminate(BatchId) noexcept {}
  // The server stops and waits no longer: an engine in processes of its own ends them, whatever
  // they run or load, and starts no more. From any thread; waits for nothing.
  virtual void Abandon() noexcept {}
  virtual MemoryUse Memory(ModelHandle) const { return {}; }
  // The arenas of this process, by model version. Thread-safe; waits for no batch.
  virtual std::vector<ArenaUse> Arenas() const { return {}; }
  // Gives memory back to the allocator that runs have left and nothing has used for a while:
  // whether there was any. Called every kRestLook by whoever has the engine in its process.
  // Thread-safe; waits for no batch.
  static constexpr Duration kRestLook = Seconds(2);
  virtual bool GiveBackAtRest() { return false; }
  // Inputs to measure the model with, in the order of ModelSpec::inputs, where noise or zeros would
  // not do: no noise is a JPEG. Empty: they would.
  virtual std::vector<SampleTensor> Sample(ModelHandle) const { return {}; }
  // Runs each of `jobs`, all of one exit, apart from what is served, and says what it did. Slow:
  // for those who measure. kUnimplemented from an engine that cannot tell.
  virtual Expected<std::vector<BatchWork>> Examine(ModelHandle, std::span<const BatchJob>) {
    return Fail(ErrorCode::kUnimplemented,
                "this engine cannot report the operations of its batches");
  }
};

}  // namespace tactus
