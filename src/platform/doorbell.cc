#include "platform/doorbell.h"

#include <chrono>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tactus {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t),
              "the kernel sees a word");

long Futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* until) {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, until, nullptr,
                 FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void Doorbell::Wake() { Futex(word_, FUTEX_WAKE_BITSET, 1, nullptr); }

void Doorbell::Sleep(WallClock::Real until) {
  using namespace std::chrono;
  // The bitset form takes an absolute instant on CLOCK_MONOTONIC, which is steady_clock: a late
  // start of the wait does not move its end.
  timespec end{};
  const timespec* limit = nullptr;
  if (until != WallClock::Real::max()) {
    const auto whole = duration_cast<seconds>(until.time_since_epoch());
    end.tv_sec = whole.count();
    end.tv_nsec = duration_cast<nanoseconds>(until.time_since_epoch() - whole).count();
    limit = &end;
  }
  if (word_.load(std::memory_order_acquire) == kAsleep) {
    Futex(word_, FUTEX_WAIT_BITSET, kAsleep, limit);
  }
  Disarm();
}

}  // namespace tactus
