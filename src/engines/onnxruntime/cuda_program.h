// ONNX graphs on an NVIDIA device, by ONNX Runtime's CUDA provider: programs for the engine that
// has the device (engines/cuda).
//
// The provider makes streams without a priority, so each program brings the stream that it is
// loaded for; and it must not run one session for two streams at once, so each program has
// sessions, and so weights, of its own.
#pragma once

#include <filesystem>

#include "base/expected.h"
#include "engines/device_program.h"

namespace tactus {

// `library` as MakeOnnxRuntimeEngine takes it; empty: .cache/onnxruntime-gpu/lib in a folder above
// the program comes first, unless $ONNXRUNTIME_ROOT says another one. A library without the
// provider is an error of one line that says what it has and what to do.
Expected<DevicePrograms> MakeOnnxCudaPrograms(const std::filesystem::path& library);

}  // namespace tactus
