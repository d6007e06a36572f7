// The allocator keeps freed memory for the next request. After a flood that can be most of what the
// process has, so a server that is idle gives it back to the system.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

namespace tactus {

// The allocator gives large blocks back to the kernel as soon as they are free, and every request
// of 600 kB then costs half a millisecond of page faults. Keeps them instead.
void KeepFreedMemory();

// Looks every two seconds: where `activity` is twice the same, and was not at the last time memory
// was given back, it is given back. `activity` changes with every call; it is called on the thread.
std::jthread GiveBackWhenIdle(std::function<std::int64_t()> activity);

}  // namespace tactus
