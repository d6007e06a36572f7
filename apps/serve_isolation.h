// --isolate of `tactus serve`: each lane's models in a process of its own (docs/isolation.md).
#pragma once

#include "base/expected.h"
#include "engines/registry.h"
#include "runtime/runtime.h"
#include "serve_options.h"

namespace tactus {

// An error for options that --isolate does not go with.
Status CheckIsolation(const ServeOptions& options);
// What --isolate changes of the others' options; nothing without it.
void Isolate(const ServeOptions& options, EngineOptions& engines);
void Isolate(const ServeOptions& options, RuntimeOptions& runtime);

// Where `argv` says that this program was started to run an engine for a server: does so, and never
// returns.
void RunIfEngineProcess(int argc, char** argv);

}  // namespace tactus
