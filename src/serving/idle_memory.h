// The allocator keeps freed memory for the next request. After a flood that can be most of what the
// process has, so a server gives it back to the system: at once where it is idle, and after a
// minute where calls go on.
#pragma once

#include <memory>

#include "platform/repeated_task.h"
#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"

namespace tactus {

// The allocator gives large blocks back to the kernel as soon as they are free, and every request
// of 600 kB then costs half a millisecond of page faults. Keeps them instead.
void KeepFreedMemory();

// Looks every two seconds; KeptMemory (platform/kept_memory.h) says when memory is given back. Both
// must outlive the thread.
std::unique_ptr<RepeatedTask> GiveBackKeptMemory(const ServingMetrics& metrics,
                                                 const Runtime& runtime);

}  // namespace tactus
