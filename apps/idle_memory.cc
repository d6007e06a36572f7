#include "idle_memory.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include <malloc.h>

#include "platform/kept_memory.h"

namespace tactus {
namespace {

constexpr std::chrono::seconds kLookEvery{2};
// Looks from one reading of the heap under load to the next: one in ten seconds.
constexpr int kLooksToAReading = 5;

// Changes with every call.
std::int64_t Activity(const ServingMetrics& metrics, const Runtime& runtime) {
  const CallTotals calls = metrics.calls();
  return calls.good + calls.bad + (runtime.pending() > 0 ? 1 : 0);
}

}  // namespace

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc accepts
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
}

std::jthread GiveBackKeptMemory(const ServingMetrics& metrics, const Runtime& runtime) {
  return std::jthread([&metrics, &runtime](std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    KeptMemory kept;
    int looks = 0;
    do {
      bool due = kept.GivesBackIdle(Activity(metrics, runtime));
      if (!due && looks++ % kLooksToAReading == 0) due = kept.GivesBackBusy(ReadHeap());
      if (due) {
        malloc_trim(0);
        kept.GaveBack(ReadHeap());
      }
      wake.wait_for(lock, stop, kLookEvery, [] { return false; });
    } while (!stop.stop_requested());
  });
}

}  // namespace tactus
