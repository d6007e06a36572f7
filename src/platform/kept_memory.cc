#include "platform/kept_memory.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <optional>
#include <utility>

#include <malloc.h>
#include <unistd.h>

namespace tactus {

HeapUse ReadHeap() {
  HeapUse use;
  const struct mallinfo2 heap = mallinfo2();  // of all arenas
  use.in_use = static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
  std::ifstream statm("/proc/self/statm");
  std::int64_t all = 0, resident = 0, of_files = 0;
  if (statm >> all >> resident >> of_files)
    use.resident = (resident - of_files) * sysconf(_SC_PAGESIZE);
  return use;
}

HeapUse RecentHeap() {
  static std::mutex mutex;
  static HeapUse read;
  static std::optional<std::chrono::steady_clock::time_point> at;
  const std::lock_guard lock(mutex);
  const auto now = std::chrono::steady_clock::now();
  if (!at || now - *at >= std::chrono::seconds(1)) {
    read = ReadHeap();
    at = now;
  }
  return read;
}

bool KeptMemory::GivesBackIdle(std::int64_t activity) {
  const bool idle = std::exchange(activity_, activity) == activity;
  return idle && given_back_ != activity;
}

bool KeptMemory::GivesBackBusy(const HeapUse& use) {
  const std::int64_t beside = use.resident - use.in_use;
  base_ = std::min(base_.value_or(beside), beside);
  beyond_ = beside - *base_ > kMost ? beyond_ + 1 : 0;
  return beyond_ >= kReadings;
}

void KeptMemory::GaveBack(const HeapUse& use) {
  given_back_ = activity_;
  base_ = use.resident - use.in_use;
  beyond_ = 0;
}

}  // namespace tactus
