#include "engines/cuda/device_peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "engines/cuda/staging.h"
#include "engines/cuda/work_kernel.h"

namespace tactus {
namespace {

constexpr int kLaunches = 4;
constexpr int kRounds = 5;                // the quickest counts: others only take away
constexpr std::uint32_t kRead = 131'072;  // bytes of a block that is to read

// So much of each block, with data of so many bytes.
struct Load {
  std::uint32_t steps = 1;
  std::uint32_t block_bytes = kRead;
  std::uint64_t data_bytes = 0;
};

class PeakKernel {
 public:
  explicit PeakKernel(Device& device)
      : device_(device),
        driver_(device.driver()),
        blocks_(64 * static_cast<unsigned>(device.facts().multiprocessors)),
        data_(driver_) {}
  ~PeakKernel() {
    if (library_ != nullptr) (void)Ask(driver_, driver_.unload_library, library_);
    if (stream_ != nullptr) device_.Destroy(stream_);
  }
  PeakKernel(const PeakKernel&) = delete;
  PeakKernel& operator=(const PeakKernel&) = delete;

  Status Open() {
    const auto stream = device_.MakeStream(0);
    if (!stream) return std::unexpected(stream.error());
    stream_ = *stream;
    Status ok = Ask(driver_, driver_.load_library, &library_, static_cast<const void*>(kWorkKernel),
                    nullptr, nullptr, 0u, nullptr, nullptr, 0u);
    if (ok) ok = Ask(driver_, driver_.library_kernel, &work_, library_, "work");
    return ok;
  }

  // How often each second one block's load is done, by all blocks of the device together.
  Expected<double> BlocksPerSecond(Load load) {
    const std::uint64_t room = device_.facts().memory_bytes / 256 / load.block_bytes;
    const std::uint64_t wanted = load.data_bytes / load.block_bytes;
    load.data_bytes = std::max<std::uint64_t>(std::min(wanted, room), 1) * load.block_bytes;
    if (const auto data = data_.Get(load.data_bytes); !data) return std::unexpected(data.error());
    double best = 0;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      Status ok;
      for (int i = 0; i < kLaunches && ok; ++i) ok = Launch(load);
      if (ok) ok = Ask(driver_, driver_.await_stream, stream_);
      if (!ok) return std::unexpected(ok.error());
      const double took = ToSeconds(std::chrono::steady_clock::now() - begin);
      best = std::max(best, kLaunches * static_cast<double>(blocks_) / took);
    }
    return best;
  }

 private:
  Status Launch(Load& load) {
    CUdeviceptr data = data_.data();
    void* arguments[] = {&data, &load.data_bytes, &load.block_bytes, &load.steps};
    return Ask(driver_, driver_.launch_kernel, reinterpret_cast<CUfunction>(work_), blocks_, 1u, 1u,
               kWorkThreads, 1u, 1u, 0u, stream_, static_cast<void**>(arguments), nullptr);
  }

  Device& device_;
  const Driver& driver_;
  const unsigned blocks_;
  CUstream stream_ = nullptr;
  CUlibrary library_ = nullptr;
  CUkernel work_ = nullptr;
  DeviceBuffer data_;
};

}  // namespace

Expected<DevicePeaks> MeasureDevicePeaks(Device& device) {
  if (Status ok = device.Bind(); !ok) return std::unexpected(ok.error());
  PeakKernel kernel(device);
  if (Status ok = kernel.Open(); !ok) return std::unexpected(ok.error());
  constexpr std::uint32_t kSteps = 4000;
  const auto computed = kernel.BlocksPerSecond({kSteps, 4096, 4 << 20});
  if (!computed) return std::unexpected(computed.error());
  // What all L2 caches hold, and what none does.
  const auto cached = kernel.BlocksPerSecond({1, kRead, 16 << 20});
  if (!cached) return std::unexpected(cached.error());
  const auto beyond = kernel.BlocksPerSecond({1, kRead, std::uint64_t{1} << 30});
  if (!beyond) return std::unexpected(beyond.error());
  int cache = 0;
  const Status known = Ask(device.driver(), device.driver().device_attribute, &cache,
                           CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device.handle());
  if (!known) return std::unexpected(known.error());
  return DevicePeaks{.fmas = *computed * kWorkThreads * kFmasPerStep * kSteps,
                     .l2_bytes = *cached * kRead,
                     .memory_bytes = *beyond * kRead,
                     .cache_bytes = static_cast<std::uint64_t>(cache)};
}

}  // namespace tactus
