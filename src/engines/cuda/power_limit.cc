#include "engines/cuda/power_limit.h"

#include <dlfcn.h>

namespace tactus {
namespace {

// As nvml.h has them: an nvmlReturn_t is an int of which 0 is success, a device an opaque pointer.
using NvmlInit = int (*)();
using NvmlFind = int (*)(const char* uuid, void** device);
using NvmlPowerLimit = int (*)(void* device, unsigned* milliwatts);

template <class Function>
Function Symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

int PowerLimitWatts(const std::string& uuid, const std::filesystem::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 0;
  const auto init = Symbol<NvmlInit>(library, "nvmlInit_v2");
  const auto find = Symbol<NvmlFind>(library, "nvmlDeviceGetHandleByUUID");
  const auto limit = Symbol<NvmlPowerLimit>(library, "nvmlDeviceGetEnforcedPowerLimit");
  if (init == nullptr || find == nullptr || limit == nullptr || init() != 0) return 0;
  void* device = nullptr;
  unsigned milliwatts = 0;
  if (find(uuid.c_str(), &device) != 0 || limit(device, &milliwatts) != 0) return 0;
  return static_cast<int>(milliwatts / 1000);
}

}  // namespace tactus
