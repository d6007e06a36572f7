// Which processor cores the lanes get, and which the rest of the process.
#pragma once

#include <string_view>
#include <thread>
#include <vector>

namespace tactus {

struct CpuAffinity {
  std::vector<std::vector<int>> lanes;  // by LaneId: the cores its slots share; empty: not pinned
  std::vector<int> others;              // cores for everything else; empty: not pinned

  // The cores of lane `i`; empty when nothing is pinned.
  std::vector<int> lane(int i) const { return lanes.empty() ? std::vector<int>{} : lanes[i]; }
};

// Out of `allowed` (ascending) each lane gets `cores_each`, the first lane those at the end. Empty
// when that would leave no core for the threads that talk to clients and decide.
CpuAffinity AssignCores(std::vector<int> allowed, int lanes, int cores_each = 1);
// The cores this process may use.
std::vector<int> AllowedCores();

// For the calling thread, and for those that it starts later. Best effort; empty: no change.
void PinThisThread(const std::vector<int>& cores);
void PinThread(std::thread::native_handle_type thread, const std::vector<int>& cores);
// At most 15 characters are kept.
void NameThisThread(std::string_view name);
// From now on this thread preempts no other when it wakes: it runs once a core is idle, or the time
// slice of whoever runs there is over, after some milliseconds (SCHED_BATCH).
void WaitForTurns();
// The kernel wakes this thread within a nanosecond's slack of its timers instead of 50 us.
void SharpenTimers();

}  // namespace tactus
