#include "engines/registry.h"

#include <functional>

#include <fmt/format.h>

#include "engines/identity/identity_engine.h"
#include "engines/op/op_engine.h"
#ifdef TACTUS_HAVE_ONNXRUNTIME
#include "engines/onnxruntime/onnxruntime_engine.h"
#endif
#ifdef TACTUS_HAVE_CUDA
#include "engines/cuda/cuda_engine.h"
#ifdef TACTUS_HAVE_ONNXRUNTIME
#include "engines/onnxruntime/cuda_program.h"
#endif
#ifdef TACTUS_HAVE_AOTI
#include "engines/aoti/aoti_program.h"
#endif
#endif

namespace tactus {
namespace {

using Maker = Expected<std::unique_ptr<Engine>> (*)(const EngineOptions&);

struct Family {
  EngineInfo info;
  Maker make;
  bool on_devices = false;  // takes EngineOptions::devices, if the build has CUDA's headers
};

Expected<std::unique_ptr<Engine>> MakeIdentity(const EngineOptions&) {
  return MakeIdentityEngine();
}

Expected<std::unique_ptr<Engine>> MakeOperators(const EngineOptions&) { return MakeOpEngine(); }

Expected<std::unique_ptr<Engine>> MakeEmulated(const EngineOptions& options) {
  if (options.emulated.latencies == nullptr) {
    return InvalidArgument("the emulated engine takes its latencies from a profile; give one");
  }
  return MakeEmulatedEngine(options.emulated);
}

#ifdef TACTUS_HAVE_CUDA
// On devices. What is missing is said in the order in which it has to be there. `otherwise`: what
// else can be done where there is no driver.
[[maybe_unused]] Expected<std::unique_ptr<Engine>> OnCuda(
    const EngineOptions& options, const std::function<Expected<DevicePrograms>()>& make_programs,
    const char* otherwise) {
  const auto at_device = [](const Error& error) {
    return Fail(error.code, "--device: " + error.message);
  };
  auto driver = OpenCudaDriver();
  if (!driver) return at_device({driver.error().code, driver.error().message + otherwise});
  auto programs = make_programs();
  if (!programs) return at_device(programs.error());
  auto engine = MakeCudaEngine(*std::move(driver), {.name = programs->name,
                                                    .devices = options.devices,
                                                    .priorities = options.priorities,
                                                    .load = programs->load});
  if (!engine) return at_device(engine.error());
  return engine;
}
#endif

#ifdef TACTUS_HAVE_ONNXRUNTIME
Expected<std::unique_ptr<Engine>> MakeOnnxRuntimeOnCuda(const EngineOptions& options) {
#ifdef TACTUS_HAVE_CUDA
  return OnCuda(
      options, [&] { return MakeOnnxCudaPrograms(options.onnxruntime_library); },
      ", or leave --device out");
#else
  return Fail(
      ErrorCode::kUnimplemented,
      fmt::format(
          "--device: this build found no cuda.h or nvml.h, and so knows no device cuda:{}; run "
          "./run setup gpu and build again, or leave --device out",
          options.devices[0]));
#endif
}
#endif

#ifdef TACTUS_HAVE_AOTI
Expected<std::unique_ptr<Engine>> MakeAotiOnCuda(const EngineOptions& options) {
  if (options.devices.empty()) {
    return InvalidArgument("AOTInductor packages run on NVIDIA devices: name one with --device");
  }
  return OnCuda(
      options, [] { return MakeAotiPrograms(AotiTarget::kCuda); }, "");
}
#endif

std::vector<Family> Families() {
  return {
#ifdef TACTUS_HAVE_ONNXRUNTIME
      {{"onnxruntime", "onnxruntime_onnx",
        "ONNX graphs on this machine's processor, or on NVIDIA devices"},
       [](const EngineOptions& options) {
         return options.devices.empty() ? MakeOnnxRuntimeEngine(options.onnxruntime_library)
                                        : MakeOnnxRuntimeOnCuda(options);
       },
       true},
#endif
#ifdef TACTUS_HAVE_AOTI
      {{"aoti", "pytorch_aoti", "AOTInductor packages (.pt2) on NVIDIA devices"},
       MakeAotiOnCuda,
       true},
#endif
      {{"op", std::string(kHostPlatform), "decodes, resizes and the like, on the host"},
       MakeOperators},
      {{"identity", "identity", "answers with the request's own bytes"}, MakeIdentity},
      {{"emulated", "emulated", "takes a profile's time and answers zeros"}, MakeEmulated},
  };
}

// Whether a family that has no devices is asked for one. Operators are for the host whatever else
// runs where.
bool LacksDevices(const Family& family, const EngineOptions& options) {
  return !options.devices.empty() && !family.on_devices && family.info.platform != kHostPlatform;
}

Error RefusedDevice(std::string_view name) {
  std::string others;
#ifdef TACTUS_HAVE_CUDA
  for (const Family& family : Families()) {
    if (family.on_devices) others += (others.empty() ? "" : ", ") + family.info.name;
  }
#endif
  const std::string remedy = others.empty() ? "; no engine of this build takes one"
                                            : ", or use an engine that takes one: " + others;
  return {ErrorCode::kInvalidArgument,
          fmt::format("engine '{}' takes no --device: leave it out{}", name, remedy)};
}

}  // namespace

std::vector<EngineInfo> Engines() {
  std::vector<EngineInfo> all;
  for (const Family& family : Families()) all.push_back(family.info);
  return all;
}

std::string EngineNames() {
  std::string names;
  for (const EngineInfo& engine : Engines()) names += (names.empty() ? "" : ", ") + engine.name;
  return names;
}

Expected<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const EngineOptions& options) {
  for (const Family& family : Families()) {
    if (name == family.info.name || name == family.info.platform) {
      if (LacksDevices(family, options)) return std::unexpected(RefusedDevice(name));
      if (!options.isolation || family.info.name == "emulated") return family.make(options);
      return MakeIsolatedEngine(family.info.name, options.onnxruntime_library, *options.isolation);
    }
  }
  std::string remedy;
  if (name == "onnxruntime" || name == "onnxruntime_onnx") {
    remedy = "; this build found no ONNX Runtime headers: set ONNXRUNTIME_ROOT, or run ./run build";
  }
  if (name == "aoti" || name == "pytorch_aoti") {
    remedy =
        "; this build has no AOTInductor: build with TORCH_ROOT set to the folder of the Python "
        "package torch (docs/reference/gpu.md)";
  }
  return NotFound(fmt::format("no engine '{}'; there are: {}{}", name, EngineNames(), remedy));
}

}  // namespace tactus
