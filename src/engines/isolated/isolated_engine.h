// An engine in processes of its own, one for each lane: what kills one (a graph that divides by
// zero, a library's fault, the system where memory runs out) costs a lane its batch, and the server
// lives. Batches' tensors go through memory that both have. Why so: docs/design/0014.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/serving_time.h"
#include "core/engine.h"

namespace tactus {

struct IsolationOptions {
  // What to start: a program that calls RunEngineProcess (process_host.h) if its first argument is
  // kEngineProcess. This one, by default.
  std::vector<std::string> program = {"/proc/self/exe"};
  // After a batch was asked to stop, until its process is killed. 0: it never is.
  Duration stop_grace = Seconds(5);
  // After the last sign of life of a process, until it is killed: it hangs. 0: it never is.
  Duration hang_limit = Seconds(5);
};

// A lane's process, now.
struct EngineProcessReading {
  std::string engine;  // by its name in the registry
  int lane = 0;        // CpuPlacement::process
  int pid = 0;
  std::int64_t starts = 0;  // of processes for this lane, this one among them
  bool runs = true;
  bool silent = false;  // it runs, and gives no sign of life: it probably hangs
  std::string ending;   // where it runs no more: how it ended
  std::uint64_t resident_bytes = 0;
};

// The engine `name` of the started program; `library` as EngineOptions::onnxruntime_library. Its
// traits are that engine's; one batch runs at a time in a lane, so that it is known whose batch it
// was that a process died of. The lane's process is CpuPlacement::process: it is started with the
// first model there, or when the last one died. A model that is loaded for kTrialProcess has one of
// its own until it is unloaded.
//
// A batch under which the process dies is answered with lane_lost and suspect, and handles in it
// are dead: models are to be loaded anew. A load under which it dies is kInternal and says so.
// A process that hangs is killed, and so dies.
Expected<std::unique_ptr<Engine>> MakeIsolatedEngine(const std::string& name,
                                                     const std::string& library,
                                                     const IsolationOptions& options);

// Readings of the lanes' processes, without trials; empty for an engine in this one. Thread-safe.
std::vector<EngineProcessReading> ProcessesOf(Engine& engine);

}  // namespace tactus
