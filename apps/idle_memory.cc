#include "idle_memory.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include <malloc.h>

namespace tactus {

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc accepts
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
}

std::jthread GiveBackWhenIdle(std::function<std::int64_t()> activity) {
  return std::jthread([activity = std::move(activity)](std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    std::int64_t last = activity();
    std::optional<std::int64_t> given_back;
    while (!wake.wait_for(lock, stop, std::chrono::seconds(2), [] { return false; }) &&
           !stop.stop_requested()) {
      const std::int64_t now = activity();
      const bool idle = now == std::exchange(last, now);
      if (!idle || given_back == now) continue;
      malloc_trim(0);
      given_back = now;
    }
  });
}

}  // namespace tactus
