#include "device/kernel_net.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "engines/cuda/cuda_engine.h"
#include "engines/cuda/device.h"
#include "engines/cuda/device_peaks.h"
#include "engines/cuda/staging.h"
#include "engines/cuda/work_kernel.h"
#include "program.h"

namespace tactus {
namespace {

// Nets whose weights are more than this find them in no L2 cache that there is (60 MB).
constexpr std::uint64_t kBeyondL2 = std::uint64_t{64} << 20;

std::vector<KernelStage> Stages(int count, const KernelStage& stage) {
  return std::vector<KernelStage>(static_cast<std::size_t>(count), stage);
}

// What a net's programs take of a device that has little memory.
std::uint64_t WeightsOn(std::uint64_t wanted, std::uint64_t memory, std::uint32_t grain) {
  const std::uint64_t most = std::max<std::uint64_t>(memory / 256, grain);
  return std::max<std::uint64_t>(std::min(wanted, most) / grain, 1) * grain;
}

class NetProgram final : public DeviceProgram {
 public:
  NetProgram(std::shared_ptr<const Driver> driver, KernelNet net, CUstream stream)
      : driver_(std::move(driver)), net_(std::move(net)), stream_(stream), weights_(*driver_) {}
  ~NetProgram() override {
    if (library_ != nullptr) (void)Ask(*driver_, driver_->unload_library, library_);
  }
  NetProgram(const NetProgram&) = delete;
  NetProgram& operator=(const NetProgram&) = delete;

  Status Open(std::uint64_t memory) {
    Status ok =
        Ask(*driver_, driver_->load_library, &library_, static_cast<const void*>(kWorkKernel),
            nullptr, nullptr, 0u, nullptr, nullptr, 0u);
    if (ok) ok = Ask(*driver_, driver_->library_kernel, &work_, library_, "work");
    if (!ok) return ok;
    std::uint32_t grain = 4096;
    for (const KernelStage& stage : net_.stages) grain = std::max(grain, stage.block_bytes);
    weight_bytes_ = WeightsOn(net_.weight_bytes, memory, grain);
    if (const auto got = weights_.Get(weight_bytes_); !got) return std::unexpected(got.error());
    // The driver loads a kernel's code when it is first launched, and may wait until whatever else
    // runs on the device has ended.
    ok = Launch({.kernels = 1, .fixed_blocks = 1, .row_blocks = 0, .steps = 1}, 0);
    if (ok) ok = Ask(*driver_, driver_->await_stream, stream_);
    return ok;
  }

  Expected<DeviceOutputs> Enqueue(ExitId exit, std::span<const DeviceTensor> inputs) override {
    const auto rows = static_cast<int>(inputs[0].shape[0]);
    const std::size_t last = net_.early_exits ? exit.value() + 1 : net_.stages.size();
    for (std::size_t s = 0; s < last; ++s) {
      const KernelStage& stage = net_.stages[s];
      for (int k = 0; k < stage.kernels; ++k) {
        if (Status ok = Launch(stage, rows); !ok) return std::unexpected(ok.error());
      }
    }
    DeviceTensor answer{.address = inputs[0].address, .shape = {rows, kAnswerFloats}};
    answer.bytes = static_cast<std::size_t>(rows * kAnswerFloats) * sizeof(float);
    return DeviceOutputs{{answer}, nullptr};
  }

 private:
  Status Launch(const KernelStage& stage, int rows) {
    CUdeviceptr data = weights_.data();
    std::uint64_t total = weight_bytes_;
    std::uint32_t bytes = stage.block_bytes;
    auto steps = static_cast<std::uint32_t>(stage.steps);
    void* arguments[] = {&data, &total, &bytes, &steps};
    const auto blocks = static_cast<unsigned>(stage.fixed_blocks + stage.row_blocks * rows);
    return Ask(*driver_, driver_->launch_kernel, reinterpret_cast<CUfunction>(work_), blocks, 1u,
               1u, kWorkThreads, 1u, 1u, 0u, stream_, static_cast<void**>(arguments), nullptr);
  }

  const std::shared_ptr<const Driver> driver_;
  const KernelNet net_;
  const CUstream stream_;
  CUlibrary library_ = nullptr;
  CUkernel work_ = nullptr;
  DeviceBuffer weights_;
  std::uint64_t weight_bytes_ = 0;
};

}  // namespace

// On an H200 a kernel of 264 blocks keeps all SMs busy, and takes some 50 us with 1200 steps.
std::vector<KernelNet> KernelNets() {
  constexpr std::uint32_t kMuch = 131'072;
  const KernelStage deep{.fixed_blocks = 132, .row_blocks = 66};
  const auto repeated = [](KernelStage stage, int kernels) {
    stage.kernels = kernels;
    return stage;
  };
  return {
      // As deep as ResNets of three sizes, four exits each.
      {"exits_s", 10, Stages(4, repeated(deep, 4)), true},
      {"exits_m", 10, Stages(4, repeated(deep, 8)), true},
      {"exits_l", 10, Stages(4, repeated(deep, 12)), true},
      // One exit: of small kernels; of middling and of large ones; of many that fill few SMs.
      {"tiny", 16, {{3, 16, 4, 400}}},
      {"quick", 16, {{8, 66, 33}}},
      {"wide", 16, {{10, 264, 132, 1200, 16'384}}},
      {"thin", 16, {{20, 32, 8}}},
      // Bound by the device's memory, and by its caches.
      {"stream", 16, {{8, 528, 33, 50, kMuch}}, false, std::uint64_t{256} << 20},
      {"cached", 16, {{10, 264, 66, 100, kMuch}}, false, std::uint64_t{24} << 20},
      // Nearly all of it is reading weights, so that batches pay.
      {"weights", 32, {{16, 1056, 8, 20, kMuch}}, false, std::uint64_t{256} << 20},
  };
}

KernelNet NetNamed(std::string_view name) {
  const std::vector<KernelNet> nets = KernelNets();
  const auto found = std::ranges::find(nets, name, &KernelNet::name);
  CHECK(found != nets.end(), "the benchmark names nets that there are");
  return *found;
}

NetWork WorkOf(const KernelNet& net, int exit, int batch) {
  NetWork work;
  const std::size_t last = net.early_exits ? static_cast<std::size_t>(exit) + 1 : net.stages.size();
  for (std::size_t s = 0; s < last; ++s) {
    const KernelStage& stage = net.stages[s];
    const double blocks =
        static_cast<double>(stage.kernels) * (stage.fixed_blocks + stage.row_blocks * batch);
    work.fmas += blocks * kWorkThreads * kFmasPerStep * stage.steps;
    work.bytes += blocks * stage.block_bytes;
  }
  return work;
}

ModelSpec SpecOf(const KernelNet& net, const std::string& model) {
  ModelSpec spec{.name = model, .platform = "kernels", .max_batch = net.max_batch};
  spec.inputs = {{"x", DataType::kFp32, {-1, kRowFloats}}};
  spec.outputs = {{"y", DataType::kFp32, {-1, kAnswerFloats}}};
  const std::size_t exits = net.early_exits ? net.stages.size() : 1;
  for (std::size_t e = 1; e <= exits; ++e) spec.exits.push_back({std::to_string(e), {}, 0});
  spec.parameters["net"] = net.name;
  return spec;
}

Expected<std::unique_ptr<Engine>> MakeNetEngine(const BenchDevice& device,
                                                std::vector<int> priorities) {
  CudaOptions options{.name = "kernel nets", .devices = {device.ordinal}};
  options.priorities = std::move(priorities);
  options.power_limit = device.power_limit;
  options.nvml = device.nvml;
  options.load = [driver = device.driver, memory = device.facts.memory_bytes](
                     ModelSpec& spec,
                     const DeviceStream& stream) -> Expected<std::unique_ptr<DeviceProgram>> {
    auto program = std::make_unique<NetProgram>(driver, NetNamed(spec.parameters["net"]),
                                                static_cast<CUstream>(stream.handle));
    if (Status ok = program->Open(memory); !ok) return std::unexpected(ok.error());
    return program;
  };
  return MakeCudaEngine(device.driver, std::move(options));
}

Expected<DevicePeaks> PeaksOf(const BenchDevice& device) {
  auto open = Device::Open(device.driver, device.ordinal, device.power_limit);
  if (!open) return std::unexpected(open.error());
  return MeasureDevicePeaks(**open);
}

Throughput ResourceShares(const KernelNet& net, int exit, int batch, double seconds,
                          const DevicePeaks& peaks, const DeviceFacts& facts) {
  const NetWork work = WorkOf(net, exit, batch);
  const bool beyond = WeightsOn(net.weight_bytes, facts.memory_bytes, 4096) > kBeyondL2;
  const auto share = [&](double amount, double peak) {
    return std::clamp(amount / seconds / peak, 0.0, 1.0);
  };
  Throughput use{};
  use[static_cast<std::size_t>(Resource::kFma)] = share(work.fmas, peaks.fmas);
  use[static_cast<std::size_t>(Resource::kL2)] = share(work.bytes, peaks.l2_bytes);
  use[static_cast<std::size_t>(Resource::kDram)] =
      beyond ? share(work.bytes, peaks.memory_bytes) : 0;
  return use;
}

}  // namespace tactus
