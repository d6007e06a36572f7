#include "engines/registry.h"

#include <fmt/format.h>

#include "engines/identity/identity_engine.h"
#include "engines/op/op_engine.h"
#ifdef TACTUS_HAVE_ONNXRUNTIME
#include "engines/onnxruntime/onnxruntime_engine.h"
#endif

namespace tactus {
namespace {

using Maker = Expected<std::unique_ptr<Engine>> (*)(const EngineOptions&);

struct Family {
  EngineInfo info;
  Maker make;
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

std::vector<Family> Families() {
  return {
#ifdef TACTUS_HAVE_ONNXRUNTIME
      {{"onnxruntime", "onnxruntime_onnx", "ONNX graphs on this machine's processor"},
       [](const EngineOptions& options) {
         return MakeOnnxRuntimeEngine(options.onnxruntime_library);
       }},
#endif
      {{"op", std::string(kHostPlatform), "decodes, resizes and the like, on the host"},
       MakeOperators},
      {{"identity", "identity", "answers with the request's own bytes"}, MakeIdentity},
      {{"emulated", "emulated", "takes a profile's time and answers zeros"}, MakeEmulated},
  };
}

}  // namespace

std::vector<EngineInfo> Engines() {
  std::vector<EngineInfo> all;
  for (const Family& family : Families()) all.push_back(family.info);
  return all;
}

Expected<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const EngineOptions& options) {
  std::string known;
  for (const Family& family : Families()) {
    if (name == family.info.name || name == family.info.platform) return family.make(options);
    known += (known.empty() ? "" : ", ") + family.info.name;
  }
  std::string remedy;
  if (name == "onnxruntime" || name == "onnxruntime_onnx") {
    remedy = "; this build found no ONNX Runtime headers: set ONNXRUNTIME_ROOT, or run ./run build";
  }
  return NotFound(fmt::format("no engine '{}'; there are: {}{}", name, known, remedy));
}

}  // namespace tactus
