// The other side: a process that runs one engine for a server, on nobody's word but the server's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "core/engine.h"

namespace tactus {

// The engine of this name; `library` as EngineOptions::onnxruntime_library.
using HostedEngineMaker = std::function<Expected<std::unique_ptr<Engine>>(
    const std::string& engine, const std::string& library)>;

// The first argument of a program that was started to be such a process.
inline constexpr char kEngineProcess[] = "engine-process";

// Serves the process that started this one, and ends with it: never returns. `argv` is what main
// was given.
[[noreturn]] void RunEngineProcess(int argc, char** argv, const HostedEngineMaker& make);

}  // namespace tactus
