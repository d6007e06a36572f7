// Counts the calls of operator new on each thread, for a test or a benchmark that compares the
// count before and after. Like allocation_hook.h, for exactly one source file of a program.
#pragma once

#include <cstddef>

#include "base/allocation_hook.h"

namespace tactus {

inline thread_local std::size_t allocations_here = 0;  // on the calling thread, so far

inline void OnAllocation() noexcept { ++allocations_here; }

}  // namespace tactus
