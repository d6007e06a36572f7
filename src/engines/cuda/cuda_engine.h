// Runs models on NVIDIA devices. A lane is a stream for each of its models, with a priority of the
// model's level; a lane with a share of its device has the SMs of that share to itself. Batches
// come back by one thread, so that lanes need none (EngineTraits::deferred).
//
// What a model is on the device says a ProgramLoader (engines/device_program.h), of ONNX Runtime
// for instance.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "engines/device_program.h"

namespace tactus {

struct Driver;
struct Nvml;

struct CudaOptions {
  std::string name;                  // of what runs the programs: "onnxruntime 1.30.0"
  std::vector<int> devices = {0};    // as the driver counts; LaneSpec::device i is the i-th of them
  std::vector<int> priorities = {};  // of the models that are served: their levels are the streams'
  ProgramLoader load = nullptr;
  // Watts of the device with this UUID; empty: NVIDIA's management library says it.
  std::function<int(const std::string&)> power_limit = nullptr;
  // For OpenCounters; null: that of this machine.
  std::shared_ptr<const Nvml> nvml = nullptr;
};

// The driver of this machine (OpenDriver, driver.h); its error is one line that names what is
// missing and what to do.
Expected<std::shared_ptr<const Driver>> OpenCudaDriver();

// Opens the devices; the engine is a DeviceMeter too. An error for one that is not there, and for
// devices that differ in what decides latency, since lanes share a profile.
Expected<std::unique_ptr<Engine>> MakeCudaEngine(std::shared_ptr<const Driver> driver,
                                                 CudaOptions options);

}  // namespace tactus
