#include "serving/idle_memory.h"

#include <cstdint>

#include <malloc.h>

#include "platform/kept_memory.h"

namespace tactus {
namespace {

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

std::unique_ptr<RepeatedTask> GiveBackKeptMemory(const ServingMetrics& metrics,
                                                 const Runtime& runtime, EngineShelf& engines) {
  const auto look = [&metrics, &runtime, &engines, kept = KeptMemory(), looks = 0]() mutable {
    const bool rests = engines.GiveBackAtRest();
    bool due = kept.GivesBackIdle(Activity(metrics, runtime)) || rests;
    if (!due && looks++ % kLooksToAReading == 0) due = kept.GivesBackBusy(ReadHeap());
    if (!due) return;
    malloc_trim(0);
    kept.GaveBack(ReadHeap());
  };
  return std::make_unique<RepeatedTask>("idle memory", Every(Engine::kRestLook, look));
}

}  // namespace tactus
