// Every engine by name. Adding one is a folder and a line in registry.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "engines/emulated/emulated_engine.h"
#include "engines/isolated/isolated_engine.h"

namespace tactus {

struct EngineOptions {
  // Only for "emulated", which cannot be made without its latency.
  EmulatedOptions emulated;
  // Only for "onnxruntime": the shared library. Empty: searched for, see onnxruntime/library.h.
  std::filesystem::path onnxruntime_library;
  // Only for "onnxruntime" and "aoti": NVIDIA devices, as the driver counts; none: the processor. A
  // lane is on the one that LaneSpec::device says, counted in this order.
  std::vector<int> devices;
  // With those: of the models that are served. Streams have the priorities of their levels.
  std::vector<int> priorities;
  // Engines run in processes of their own; not "emulated", which runs no graph. None: in this one.
  std::optional<IsolationOptions> isolation = std::nullopt;
};

struct EngineInfo {
  std::string name;      // "onnxruntime"
  std::string platform;  // of the models it runs, as config.pbtxt says it: "onnxruntime_onnx"
  std::string summary;   // one line
};

// The platform of models that are chains of operators (engines/op): they run on the host.
inline constexpr std::string_view kHostPlatform = "tactus_op";

// The engines of this build: onnxruntime is there only if its headers were, when it was built.
std::vector<EngineInfo> Engines();
// "onnxruntime, op, identity, emulated"
std::string EngineNames();

// By the engine's name or by a model's platform. An unknown name is an error that lists those that
// exist; an engine whose library is missing is one that says where it was looked for.
Expected<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const EngineOptions& options);

}  // namespace tactus
