#include "engines/cuda/cuda_engine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "core/device_use.h"
#include "core/plan.h"
#include "engines/cuda/completion_thread.h"
#include "engines/cuda/device.h"
#include "engines/cuda/device_counters.h"
#include "engines/cuda/device_peaks.h"
#include "engines/cuda/driver.h"
#include "engines/cuda/lane_session.h"
#include "engines/cuda/nvml.h"
#include "engines/cuda/power_limit.h"
#include "engines/loaded_models.h"

namespace tactus {
namespace {

class CudaEngine final : public Engine, public DeviceMeter {
 public:
  CudaEngine(std::shared_ptr<const Driver> driver, std::vector<std::unique_ptr<Device>> devices,
             CudaOptions options)
      : driver_(std::move(driver)), options_(std::move(options)), devices_(std::move(devices)) {
    std::ranges::sort(options_.priorities);
    const auto twice = std::ranges::unique(options_.priorities);
    options_.priorities.erase(twice.begin(), twice.end());
  }

  EngineTraits traits() const override {
    return {.name = fmt::format("{} on {}", options_.name, devices_[0]->facts().name),
            .deferred = true,
            .tries = options_.name.starts_with("onnxruntime"),
            .max_slots = 64,
            .device = devices_[0]->facts()};
  }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) override {
    const std::size_t index = lane.device.value();
    if (index >= devices_.size()) {
      return InvalidArgument(
          fmt::format("model '{}': its lane is on device {} of {}; name more in --device",
                      spec.name, index, devices_.size()));
    }
    DeviceShare share{.offset = 0, .fraction = lane.fraction};
    if (const auto* place = std::get_if<CudaPlacement>(&lane.placement)) {
      share.offset = place->offset;
    }
    auto session = LaneSession::Load(*devices_[index], completions_, options_.load, spec,
                                     LevelOf(spec.priority), share);
    if (session) return models_.Add(*std::move(session));
    return Fail(session.error().code,
                fmt::format("model '{}': {}", spec.name, session.error().message));
  }

  void Unload(ModelHandle handle) override { models_.Remove(handle); }

  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    // Shared, since what is called later must be a thing that can be copied.
    auto use =
        std::make_shared<LoadedModels<std::unique_ptr<LaneSession>>::InUse>(models_.Use(handle));
    const BatchId id = job.id;
    if (!*use) {
      return completions_.AddFailed(*devices_[0], {ErrorCode::kUnavailable, "model is not loaded"},
                                    [id, &done](Status status) {
                                      BatchResult result;
                                      result.status = std::move(status);
                                      done.Done(id, std::move(result));
                                    });
    }
    LaneSession& session = ***use;
    session.Begin(job,
                  [use, id, &done](BatchResult&& result) { done.Done(id, std::move(result)); });
  }

  MemoryUse Memory(ModelHandle handle) const override {
    const auto model = models_.Use(handle);
    return model ? (*model)->Memory() : MemoryUse{};
  }

  // Of the first device: the others are like it.
  Expected<DevicePeaks> MeasurePeaks() override { return MeasureDevicePeaks(*devices_[0]); }

  Expected<std::unique_ptr<DeviceCounters>> OpenCounters() override {
    std::shared_ptr<const Nvml> nvml = options_.nvml;
    if (nvml == nullptr) {
      auto opened = OpenNvml();
      if (!opened) return std::unexpected(opened.error());
      nvml = *std::move(opened);
    }
    return OpenDeviceCounters(std::move(nvml), devices_[0]->facts().uuid);
  }

 private:
  // 0 is the highest, as PriorityLevels has it; of a model that came later, the level of the next
  // lower priority.
  int LevelOf(int priority) const {
    const auto at = std::ranges::lower_bound(options_.priorities, priority);
    return static_cast<int>(at - options_.priorities.begin());
  }

  const std::shared_ptr<const Driver> driver_;
  CudaOptions options_;
  const std::vector<std::unique_ptr<Device>> devices_;
  mutable LoadedModels<std::unique_ptr<LaneSession>> models_;
  CompletionThread completions_;  // last: batches that are under way use what stands above
};

// Devices that one profile holds for.
bool Alike(DeviceFacts a, const DeviceFacts& b) {
  a.uuid = b.uuid;
  return a == b;
}

}  // namespace

Expected<std::shared_ptr<const Driver>> OpenCudaDriver() { return OpenDriver(); }

Expected<std::unique_ptr<Engine>> MakeCudaEngine(std::shared_ptr<const Driver> driver,
                                                 CudaOptions options) {
  CHECK(options.load != nullptr && !options.devices.empty(), "something to run and where");
  if (options.power_limit == nullptr) {
    options.power_limit = [](const std::string& uuid) { return PowerLimitWatts(uuid); };
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (const int ordinal : options.devices) {
    auto device = Device::Open(driver, ordinal, options.power_limit);
    if (!device) return std::unexpected(std::move(device.error()));
    devices.push_back(*std::move(device));
    if (Alike(devices[0]->facts(), devices.back()->facts())) continue;
    return InvalidArgument(fmt::format(
        "devices cuda:{} and cuda:{} differ ({} and {}, {} W and {} W); lanes of one "
        "server share a profile, so serve each with a server of its own",
        options.devices[0], ordinal, devices[0]->facts().name, devices.back()->facts().name,
        devices[0]->facts().power_limit_watts, devices.back()->facts().power_limit_watts));
  }
  return std::make_unique<CudaEngine>(std::move(driver), std::move(devices), std::move(options));
}

}  // namespace tactus
