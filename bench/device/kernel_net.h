// Nets made of one kernel (engines/cuda/work_kernel.h), launched one behind the other as a net's
// layers are: what `./run bench gpu` serves. They compute nothing that anybody wants; what they ask
// of a device is known exactly, and they need neither a model file nor a runtime for one, so they
// run wherever NVIDIA's driver does.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/device_facts.h"
#include "core/device_use.h"
#include "core/engine.h"
#include "core/model_spec.h"
#include "core/resource_use.h"
#include "engines/cuda/driver.h"
#include "engines/cuda/nvml.h"
#include "engines/device_program.h"

namespace tactus {

// So many kernels, each of fixed_blocks + row_blocks * batch blocks.
struct KernelStage {
  int kernels = 1;
  int fixed_blocks = 0;  // what a batch costs however small it is: weights that are read
  int row_blocks = 1;
  int steps = 1200;                  // see work_kernel.h
  std::uint32_t block_bytes = 4096;  // that each block reads
};

struct KernelNet {
  std::string name;
  int max_batch = 8;
  std::vector<KernelStage> stages;
  bool early_exits = false;  // one behind each stage; else one behind the last
  std::uint64_t weight_bytes = 16 << 20;
};

// All that there are.
std::vector<KernelNet> KernelNets();
// A CHECK where there is none.
KernelNet NetNamed(std::string_view name);

// What a batch asks for, to an exit counted from 0.
struct NetWork {
  double fmas = 0;
  double bytes = 0;  // read from whatever holds the weights
};
NetWork WorkOf(const KernelNet& net, int exit, int batch);

// A model of this name that is this net: one input of kRowFloats numbers, of which the first
// kAnswerFloats are the answer.
inline constexpr std::int64_t kRowFloats = 12'288;
inline constexpr std::int64_t kAnswerFloats = 16;
ModelSpec SpecOf(const KernelNet& net, const std::string& model);

// Where the benchmark runs.
struct BenchDevice {
  std::shared_ptr<const Driver> driver;
  int ordinal = 0;
  DeviceFacts facts;
  bool fake = false;                                   // nothing that is measured there is a result
  bool processor = false;                              // nor here: there is no device
  std::function<int(const std::string&)> power_limit;  // watts of the device with a UUID
  std::shared_ptr<const Nvml> nvml = nullptr;          // null: that of this machine

  // What begins all that is printed and kept of it where there is no device; else "".
  const char* mark() const {
    if (fake) return "FAKE, no result: ";
    return processor ? "no result of a device: " : "";
  }
};

// The engine that runs them, on streams of the priorities of these models' levels.
Expected<std::unique_ptr<Engine>> MakeNetEngine(const BenchDevice& device,
                                                std::vector<int> priorities);

Expected<DevicePeaks> PeaksOf(const BenchDevice& device);

// What a batch uses of the device, that takes so long alone.
Throughput ResourceShares(const KernelNet& net, int exit, int batch, double seconds,
                          const DevicePeaks& peaks, const DeviceFacts& facts);

}  // namespace tactus
