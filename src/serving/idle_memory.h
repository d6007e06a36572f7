// The allocator keeps freed memory for the next request. After a flood that can be most of what the
// process has, so a server gives it back to the system: at once where it is idle, and after a
// minute where calls go on. So do its engines with what their runs have left.
#pragma once

#include <memory>

#include "engines/engine_shelf.h"
#include "platform/repeated_task.h"
#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"

namespace tactus {

// The allocator gives large blocks back to the kernel as soon as they are free, and every request
// of 600 kB then costs half a millisecond of page faults. Keeps them instead.
void KeepFreedMemory();

// Looks every two seconds; KeptMemory (platform/kept_memory.h) says when memory is given back, and
// each engine for its own. All three must outlive the thread.
std::unique_ptr<RepeatedTask> GiveBackKeptMemory(const ServingMetrics& metrics,
                                                 const Runtime& runtime, EngineShelf& engines);

}  // namespace tactus
