// A model on a lane of a device: the program, its stream, and the batches that are under way there.
// Each lane has a program of its own, and so the weights once more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "engines/cuda/completion_thread.h"
#include "engines/cuda/device.h"
#include "engines/cuda/staging.h"
#include "engines/device_program.h"

namespace tactus {

class LaneSession {
 public:
  // `level` is the model's priority level, 0 the highest. Refuses models with BYTES tensors, which
  // a device has no memory for. Others outlive it.
  static Expected<std::unique_ptr<LaneSession>> Load(Device& device, CompletionThread& completions,
                                                     const ProgramLoader& load, ModelSpec& spec,
                                                     int level, DeviceShare share);
  ~LaneSession();  // no batch is under way
  LaneSession(const LaneSession&) = delete;
  LaneSession& operator=(const LaneSession&) = delete;

  // Puts the batch into the lane's streams and returns. `done` hears of it once, on the completion
  // thread, also where it could not be put there. Thread-safe.
  void Begin(const BatchJob& job, std::function<void(BatchResult&&)> done);

  MemoryUse Memory() const;

 private:
  struct Batch;

  LaneSession(Device& device, CompletionThread& completions, const ModelSpec& spec,
              DeviceShare share);
  Status MakeStreams(int level);
  Status LoadProgram(const ProgramLoader& load, ModelSpec& spec);
  Expected<std::unique_ptr<Staging>> TakeStaging();
  Status Gather(const BatchJob& job, Batch& batch);
  Status GatherInput(std::size_t input, std::span<const RowInputs> rows, Batch& batch) const;
  Status Enqueue(const BatchJob& job, Batch& batch);
  Status Upload(Batch& batch);
  Status Download(Batch& batch);
  // Until what a failed batch may have put into the streams has passed.
  void Await() const;
  BatchResult Finish(Batch& batch, Status status);
  std::shared_ptr<const BatchOutput> Answer(Batch& batch) const;
  // By the device's clock, of events of one kind (Staging::Make).
  Duration Between(const Batch& batch, Staging::Event from, Staging::Event to) const;

  Device& device_;
  CompletionThread& completions_;
  const Driver& driver_;
  const DeviceShare share_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
  std::size_t exits_ = 0;
  bool batches_ = false;
  CUstream kernels_ = nullptr;
  CUstream downloads_ = nullptr;
  std::uint64_t weight_bytes_ = 0;
  std::unique_ptr<DeviceProgram> program_;
  std::mutex enqueue_mutex_;  // of the program and the order of the streams
  mutable std::mutex spare_mutex_;
  std::vector<std::unique_ptr<Staging>> spare_;  // at most one for each slot of the lane
  std::uint64_t staging_bytes_ = 0;              // of the device, the most at once
  std::uint64_t staging_now_ = 0;
};

}  // namespace tactus
