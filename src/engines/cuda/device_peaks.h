// The most that a device does, measured with the kernel of work_kernel.h.
#pragma once

#include "base/expected.h"
#include "core/device_use.h"
#include "engines/cuda/device.h"

namespace tactus {

// Takes some 20 ms in which nothing else should run there, and at most a 256th of its memory.
Expected<DevicePeaks> MeasureDevicePeaks(Device& device);

}  // namespace tactus
