// Finds and opens ONNX Runtime's shared library and hands its functions to the vendor's C++ header.
// Every file of this folder includes ONNX Runtime through this header only, so that all agree on
// ORT_API_MANUAL_INIT: without it a static initialiser would call into a library not yet loaded.
#pragma once

#define ORT_API_MANUAL_INIT
#include <filesystem>
#include <string>
#include <vector>

#include <onnxruntime_cxx_api.h>

#include "base/expected.h"

namespace tactus {

// Opens the library on the first call and returns its version, "1.30.0". It stays open until the
// process ends: what it allocated may live as long. `library` may be empty, a file or a folder.
Expected<std::string> OpenOnnxRuntime(const std::filesystem::path& library);

// The library's state, which logs only what is fatal. Throws what the vendor's header throws.
//
// The vendor's own builds (1.30 for Linux) collect events for it, of sessions and of runs that
// fail, in a database in the user's cache, which costs more than the run. OpenOnnxRuntime and this
// switch that off.
Ort::Env MakeEnv(const char* name);

// Where OpenOnnxRuntime looks, in order; the last ones are names for the system's loader.
std::vector<std::filesystem::path> LibraryCandidates(const std::filesystem::path& library);
// The same for people, in one line.
std::string WhereLooked(const std::filesystem::path& library);

}  // namespace tactus
