// When a session is to give back memory that a run made it take. ONNX Runtime's arena keeps all
// that any run needed, so one huge call would hold gigabytes for as long as the model is loaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tactus {

class ArenaGrowth {
 public:
  // A run begins. Whether the arena is to shrink when it ends. `idle_bytes()`: what the arena keeps
  // and nothing uses; asked now and then. Thread-safe.
  template <class IdleBytes>
  bool ShrinksAfter(const IdleBytes& idle_bytes) {
    const std::lock_guard lock(mutex_);
    ran_ = true;
    if (++runs_ < until_) return false;
    kept_ += runs_;
    runs_ = 0;
    const std::uint64_t idle = idle_bytes();
    if (shrunk_) {
      usual_ = idle;  // what runs have taken again
      kept_ = 0;
      doubt_after_ = kTimes * usual_ > before_ ? std::min(2 * doubt_after_, kMostRuns) : kDoubt;
    }
    shrunk_ = idle > kLeast && (idle > kTimes * usual_ || kept_ >= doubt_after_);
    if (!shrunk_) return false;
    before_ = idle;
    until_ = std::min(2 * until_, kMostRuns);
    return true;
  }

  // To be asked at even intervals: whether the arena is to shrink now, since no run has begun for
  // so many of them that nobody seems to need what lies idle. Thread-safe.
  template <class IdleBytes>
  bool ShrinksAtRest(const IdleBytes& idle_bytes) {
    const std::lock_guard lock(mutex_);
    still_ = std::exchange(ran_, false) ? 0 : still_ + 1;
    if (still_ == 0 || still_ % kStill != 0) return false;  // again: answers may have been held
    const std::uint64_t idle = idle_bytes();
    if (idle <= kLeast) return false;
    before_ = idle;
    runs_ = 0;
    shrunk_ = true;
    return true;
  }

  // Asked every two seconds, half a minute.
  static constexpr std::uint64_t kStill = 15;

 private:
  static constexpr std::uint64_t kLeast = 32 << 20;  // less is not worth the effort
  static constexpr std::uint64_t kTimes = 2;
  // Runs between two looks: twice as many after each time that it shrank, since runs that need the
  // memory after all take it again, page by page.
  static constexpr std::uint64_t kRuns = 8;
  static constexpr std::uint64_t kMostRuns = 1024;
  // Runs after which what seems usual is doubted, since one run alone may have taken it: twice as
  // many after each time that it was right.
  static constexpr std::uint64_t kDoubt = 64;

  std::mutex mutex_;
  std::uint64_t runs_ = 0;  // since the last look
  std::uint64_t until_ = kRuns;
  std::uint64_t usual_ = 0;   // idle bytes that runs need
  std::uint64_t before_ = 0;  // idle bytes when it shrank last
  std::uint64_t kept_ = 0;    // runs since it was seen what they take again
  std::uint64_t doubt_after_ = kDoubt;
  bool shrunk_ = false;      // at the last look
  bool ran_ = false;         // since it was asked about rest
  std::uint64_t still_ = 0;  // times in a row that it was asked and had not
};

}  // namespace tactus
