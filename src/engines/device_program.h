// What a model is to an engine whose device takes its work by streams: something that puts a
// batch's kernels into a stream and returns. Whoever makes such programs knows a model format and
// no driver; whoever runs them knows a driver and no format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/ids.h"
#include "core/model_spec.h"

namespace tactus {

// A queue of work on a device.
struct DeviceStream {
  int device = 0;          // as the driver counts
  void* handle = nullptr;  // the driver's, a CUstream
};

// In the device's memory.
struct DeviceTensor {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  Shape shape;  // of the whole batch, as the program has it (TensorSpec::reshape)
};

struct DeviceOutputs {
  std::vector<DeviceTensor> tensors;  // in the order of ModelSpec::outputs
  std::shared_ptr<void> storage;      // what they lie in; released once they were copied
};

class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  // Puts the kernels of one batch into the stream that the program was loaded for. The inputs, in
  // the order of ModelSpec::inputs, are there when the stream gets to them and stay until it has
  // passed. One call at a time.
  virtual Expected<DeviceOutputs> Enqueue(ExitId exit, std::span<const DeviceTensor> inputs) = 0;
};

// Loads a model, all of its exits, for one stream. Completes spec.inputs and spec.outputs as
// Engine::Load does. The device's context is the calling thread's. Thread-safe.
using ProgramLoader =
    std::function<Expected<std::unique_ptr<DeviceProgram>>(ModelSpec& spec, const DeviceStream&)>;

// All programs of one format.
struct DevicePrograms {
  std::string name;  // of what runs them, and its version: "onnxruntime 1.30.0"
  ProgramLoader load;
};

}  // namespace tactus
