// By how much event loops are late: what a client waits for before anybody reads its bytes.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

namespace tactus {

// Thread-safe.
class LoopLag {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kWindow{10};

  // A timer was due so long before `now`.
  void Note(std::chrono::nanoseconds late, Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    Turn(now);
    current_ = std::max(current_, late);
  }

  // The most of this window and the one before.
  std::chrono::nanoseconds Longest(Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    Turn(now);
    return std::max(current_, before_);
  }

 private:
  void Turn(Clock::time_point now) {
    if (now < begun_ + kWindow) return;
    before_ = now < begun_ + 2 * kWindow ? current_ : std::chrono::nanoseconds{};
    current_ = {};
    begun_ = now;
  }

  std::mutex mutex_;
  Clock::time_point begun_{};
  std::chrono::nanoseconds current_{};
  std::chrono::nanoseconds before_{};
};

}  // namespace tactus
