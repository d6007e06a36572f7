// ONNX graphs on this machine's processor, through ONNX Runtime's shared library, which is loaded
// when the engine is made: the build needs its headers only, and one binary works with every
// version that speaks their API or a newer one.
//
// An exit is a graph of its own, the model cut off behind that exit, because ONNX Runtime computes
// all of a graph whichever outputs are asked for. A graph is loaded once, and all lanes run it:
// each run uses only the thread that submits it.
#pragma once

#include <filesystem>
#include <memory>

#include "core/engine.h"

namespace tactus {

// `library` is libonnxruntime.so or the folder it lies in. Empty: $ONNXRUNTIME_ROOT, which is
// the library itself or has it in lib/, then beside the program, then .cache/onnxruntime/lib in a
// folder above the program, then where the system keeps its libraries. An error lists the places.
Expected<std::unique_ptr<Engine>> MakeOnnxRuntimeEngine(const std::filesystem::path& library);

}  // namespace tactus
