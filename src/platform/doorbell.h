// Wakes one thread that waits for work on rings. The rings carry the work; the doorbell only says
// that some may have come, so ringing twice or for nothing is harmless.
//
//   producer:  ring.TryPush(x); bell.Ring();
//   consumer:  AwaitWork(bell, clock, spin, until, [&] { return !ring.Empty(); });
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ring.h"
#include "base/serving_time.h"
#include "platform/wall_clock.h"

namespace tactus {

class Doorbell {
 public:
  // From any thread. A system call only if the waiter sleeps.
  void Ring() {
    if (word_.exchange(kAwake, std::memory_order_acq_rel) == kAsleep) Wake();
  }

  // For the one waiter: Arm, look at the rings once more, then Sleep or Disarm. Arm and Ring are
  // both read-modify-writes of one word, so a push before a Ring that came first is seen after Arm.
  void Arm() { word_.exchange(kAsleep, std::memory_order_acq_rel); }
  void Disarm() { word_.exchange(kAwake, std::memory_order_acq_rel); }
  // Until rung, `until` or a signal; disarmed afterwards.
  void Sleep(WallClock::Real until);

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  void Wake();

  alignas(kCacheLine) std::atomic<std::uint32_t> word_{kAwake};
};

inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when `has_work()` or at `until`; looks for `spin` before it sleeps. May return early.
template <class HasWork>
void AwaitWork(Doorbell& bell, const WallClock& clock, Duration spin, TimePoint until,
               HasWork has_work) {
  const TimePoint spin_end = clock.Now() + spin;
  for (;;) {
    if (has_work()) return;
    const TimePoint now = clock.Now();
    if (now >= until) return;
    if (now >= spin_end) break;
    SpinPause();
  }
  bell.Arm();
  if (has_work()) return bell.Disarm();
  bell.Sleep(clock.RealAt(until));
}

}  // namespace tactus
