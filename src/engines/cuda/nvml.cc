#include "engines/cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tactus {

Error NvmlError(const Nvml& nvml, const char* function, nvmlReturn_t code) {
  const char* text = nvml.error_text.call ? nvml.error_text.call(code) : nullptr;
  ErrorCode kind = ErrorCode::kInternal;
  std::string remedy;
  if (code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_FUNCTION_NOT_FOUND ||
      code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
    kind = ErrorCode::kUnimplemented;
  } else if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED) {
    kind = ErrorCode::kUnavailable;
  } else if (code == NVML_ERROR_NO_PERMISSION) {
    remedy =
        "; run as root, or have the driver allow its counters to all users "
        "(NVreg_RestrictProfilingToAdminUsers=0)";
  }
  return {kind, fmt::format("{}: {}{}", function,
                            text == nullptr ? fmt::format("code {}", static_cast<int>(code)) : text,
                            remedy)};
}

Expected<std::shared_ptr<const Nvml>> OpenNvml(const std::filesystem::path& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return NotFound(
        fmt::format("NVIDIA's management library was not found ({}); it comes with the "
                    "driver",
                    dlerror()));
  }
  auto nvml = std::make_shared<Nvml>();
  std::string missing;
  const auto find = [&]<class Signature>(DriverFunction<Signature>& function, bool must) {
    auto* const symbol = reinterpret_cast<Signature*>(dlsym(library, function.name));
    if (symbol != nullptr) function.call = symbol;
    if (symbol == nullptr && must)
      missing += (missing.empty() ? "" : ", ") + std::string(function.name);
  };
  find(nvml->init, true);
  find(nvml->error_text, true);
  find(nvml->find, true);
  find(nvml->power_limit, true);
  find(nvml->rates, true);
  find(nvml->counts, false);
  find(nvml->make_sample, false);
  find(nvml->free_sample, false);
  find(nvml->sample, false);
  find(nvml->metrics, false);
  if (!missing.empty()) {
    dlclose(library);
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("{} lacks {}: it is not NVIDIA's management library, or too old a one",
                            path.string(), missing));
  }
  if (Status started = Ask(*nvml, nvml->init); !started) return std::unexpected(started.error());
  return nvml;
}

Expected<nvmlDevice_t> FindDevice(const Nvml& nvml, const std::string& uuid) {
  nvmlDevice_t device = nullptr;
  if (Status found = Ask(nvml, nvml.find, uuid.c_str(), &device); !found) {
    return std::unexpected(found.error());
  }
  return device;
}

}  // namespace tactus
