#include "serving/device.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "check/doubts.h"
#include "engines/device_name.h"
#include "server/kserve/model_config.h"
#include "service/model_folders.h"
#include "serving/plans.h"

namespace tactus {
namespace {

constexpr const char* kOnDevices = "onnxruntime";

// Of the models that can be read; the others are refused when they are loaded.
std::vector<int> PrioritiesIn(const ModelFolders& folders) {
  std::vector<int> priorities;
  const auto models = folders.List();
  if (!models) return priorities;
  for (const std::string& model : *models) {
    const std::filesystem::path folder = folders.Of(model);
    const auto versions = ListVersions(folder, "");
    if (!versions) continue;
    for (const std::int64_t version : *versions) {
      if (const auto spec = ReadModelSpec(folder, version, "")) {
        priorities.push_back(spec->priority);
      }
    }
  }
  return priorities;
}

}  // namespace

bool OnDevices(const ServeOptions& options) {
  return !ParseDevices(options.device).value_or(std::vector<int>{}).empty();
}

int DeviceCount(const ServeOptions& options) {
  const auto devices = ParseDevices(options.device).value_or(std::vector<int>{});
  return std::max(1, static_cast<int>(devices.size()));
}

std::optional<std::string> CoresDoubt(const ServeOptions& o, int cores) {
  if (o.engine == "emulated" || OnDevices(o) || SplitsDevice(o)) return std::nullopt;
  return CoresDoubt(o.lanes * o.slots * o.threads, cores);
}

ServeOptions WithALaneOnEach(ServeOptions options) {
  options.lanes = std::max(options.lanes, DeviceCount(options));
  return options;
}

EngineOptions EngineOptionsOf(const ServeOptions& options) {
  EngineOptions engines{.emulated = {}, .onnxruntime_library = options.onnxruntime};
  engines.devices = ParseDevices(options.device).value_or(std::vector<int>{});
  if (!engines.devices.empty()) engines.priorities = PrioritiesIn(*options.folders);
  return engines;
}

Status CheckEngine(const ServeOptions& options, EngineShelf& engines) {
  if (!options.engine.empty()) {
    const auto forced = engines.For(options.engine);
    if (!forced) return Fail(forced.error().code, "--engine: " + forced.error().message);
  }
  // Else each model would say that there is no library, one after the other.
  if (!options.onnxruntime.empty() && options.engine.empty() && !OnDevices(options)) {
    const auto there = engines.For("onnxruntime_onnx");
    if (!there) return Fail(there.error().code, "--onnxruntime: " + there.error().message);
  }
  if (!OnDevices(options)) return {};
  if (SplitsDevice(options) && options.device.contains(',')) {
    return InvalidArgument("--device: --plan and --planner split one device; name one");
  }
  if (!options.engine.empty()) return {};
  const auto there = engines.For(kOnDevices);
  return there ? Status() : std::unexpected(there.error());
}

}  // namespace tactus
