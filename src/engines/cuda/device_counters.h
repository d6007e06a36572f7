// What a device counts of its own work, asked of NVIDIA's management library.
#pragma once

#include <memory>
#include <string>

#include "base/expected.h"
#include "core/device_use.h"
#include "engines/cuda/nvml.h"

namespace tactus {

// Opens the counters of the device with this UUID: GPM's (Hopper and later: multiply-adds, tensor
// cores, memory), or where the device or the driver has none the part of the time in which its
// memory was in use. The error of a device that tells neither names both.
Expected<std::unique_ptr<DeviceCounters>> OpenDeviceCounters(std::shared_ptr<const Nvml> nvml,
                                                             const std::string& uuid);

}  // namespace tactus
