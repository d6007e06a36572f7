// --isolate of `tactus serve`: each lane's models in a process of its own
// (docs/reference/isolation.md).
#pragma once

#include <memory>

#include "base/expected.h"
#include "engines/engine_shelf.h"
#include "engines/registry.h"
#include "platform/repeated_task.h"
#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"
#include "serving/host_lanes.h"
#include "serving/serve_options.h"

namespace tactus {

// An error for options that --isolate does not go with.
Status CheckIsolation(const ServeOptions& options);
// What --isolate changes of the others' options; nothing without it.
void Isolate(const ServeOptions& options, EngineOptions& engines);
void Isolate(const ServeOptions& options, RuntimeOptions& runtime);

// Adds what the shelf's processes are, and its arenas in this one, to a reading.
void AddEngines(const EngineShelf& engines, RuntimeReading& reading);
// Looks ten times a second for processes that died while they ran nothing, or that give no sign of
// life, until it is stopped, and tells the runtime: `host`, which may be null, of operators, else
// `device`.
std::unique_ptr<RepeatedTask> WatchProcesses(const ServeOptions& options,
                                             const EngineShelf& engines, Runtime& device,
                                             HostLanes* host);

// Where `argv` says that this program was started to run an engine for a server: does so, and never
// returns.
void RunIfEngineProcess(int argc, char** argv);

}  // namespace tactus
