#include "engines/cuda/power_limit.h"

#include "engines/cuda/nvml.h"

namespace tactus {

int PowerLimitWatts(const std::string& uuid, const std::filesystem::path& path) {
  const auto nvml = OpenNvml(path);
  return nvml ? PowerLimitWatts(uuid, **nvml) : 0;
}

int PowerLimitWatts(const std::string& uuid, const Nvml& nvml) {
  const auto device = FindDevice(nvml, uuid);
  unsigned milliwatts = 0;
  if (!device || !Ask(nvml, nvml.power_limit, *device, &milliwatts)) return 0;
  return static_cast<int>(milliwatts / 1000);
}

}  // namespace tactus
