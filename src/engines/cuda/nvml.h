// The functions of NVIDIA's management library (NVML) that are called here, as driver.h has those
// of the driver. The library comes with the driver; its counters of what a device does (GPM) came
// later than the rest, and not every device has them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <nvml.h>

#include "base/expected.h"
#include "engines/cuda/driver.h"

namespace tactus {

struct Nvml {
  DriverFunction<decltype(nvmlInit_v2)> init{"nvmlInit_v2"};
  DriverFunction<decltype(nvmlErrorString)> error_text{"nvmlErrorString"};
  DriverFunction<decltype(nvmlDeviceGetHandleByUUID)> find{"nvmlDeviceGetHandleByUUID"};
  DriverFunction<decltype(nvmlDeviceGetEnforcedPowerLimit)> power_limit{
      "nvmlDeviceGetEnforcedPowerLimit"};
  DriverFunction<decltype(nvmlDeviceGetUtilizationRates)> rates{"nvmlDeviceGetUtilizationRates"};

  // Null where the library does not have them.
  DriverFunction<decltype(nvmlGpmQueryDeviceSupport)> counts{"nvmlGpmQueryDeviceSupport"};
  DriverFunction<decltype(nvmlGpmSampleAlloc)> make_sample{"nvmlGpmSampleAlloc"};
  DriverFunction<decltype(nvmlGpmSampleFree)> free_sample{"nvmlGpmSampleFree"};
  DriverFunction<decltype(nvmlGpmSampleGet)> sample{"nvmlGpmSampleGet"};
  DriverFunction<decltype(nvmlGpmMetricsGet)> metrics{"nvmlGpmMetricsGet"};
  bool has_counters() const {
    return counts.call && make_sample.call && free_sample.call && sample.call && metrics.call;
  }
};

// Opens the library and starts it; it stays open. An error of one line where it is missing, lacks a
// function that must be there, or does not start.
Expected<std::shared_ptr<const Nvml>> OpenNvml(
    const std::filesystem::path& library = "libnvidia-ml.so.1");

// The error that the result of `function` stands for: kUnimplemented where the device or driver
// does not do that, kUnavailable where the device is lost, else kInternal.
Error NvmlError(const Nvml& nvml, const char* function, nvmlReturn_t code);

// Calls `function`, which is one of `nvml`'s.
template <class Signature, class... Arguments>
Status Ask(const Nvml& nvml, const DriverFunction<Signature>& function, Arguments... arguments) {
  const nvmlReturn_t code = function.call(arguments...);
  if (code == NVML_SUCCESS) return {};
  return std::unexpected(NvmlError(nvml, function.name, code));
}

// The device with this UUID ("GPU-...").
Expected<nvmlDevice_t> FindDevice(const Nvml& nvml, const std::string& uuid);

}  // namespace tactus
