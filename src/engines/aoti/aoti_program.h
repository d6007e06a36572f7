// AOTInductor packages (.pt2), which PyTorch compiles for one kind of device: programs for the
// engine that has the device (engines/cuda). models/export_aoti.py makes them of models that are in
// models/. PyTorch's libraries run them; no Python does.
#pragma once

#include "base/expected.h"
#include "engines/device_program.h"

namespace tactus {

// Where packages run that were compiled for the processor: in memory that the host can read, at
// once when they are put into the stream. For tests of what lies around them, on a device that is
// not there.
enum class AotiTarget { kCuda, kHost };

// For kCuda an error where PyTorch's libraries cannot run on a device.
Expected<DevicePrograms> MakeAotiPrograms(AotiTarget target);

}  // namespace tactus
