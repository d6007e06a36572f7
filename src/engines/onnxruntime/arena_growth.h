// When a session is to give back memory that a run made it take. ONNX Runtime's arena keeps all
// that any run needed, so one huge call would hold gigabytes for as long as the model is loaded.
#pragma once

#include <cstdint>
#include <mutex>

namespace tactus {

class ArenaGrowth {
 public:
  // A run begins. Whether the arena is to shrink when it ends. `idle_bytes()`: what the arena keeps
  // and nothing uses; asked now and then. Thread-safe.
  template <class IdleBytes>
  bool ShrinksAfter(const IdleBytes& idle_bytes) {
    const std::lock_guard lock(mutex_);
    if (++runs_ < until_) return false;
    runs_ = 0;
    const std::uint64_t idle = idle_bytes();
    if (shrunk_) usual_ = idle;  // what runs have taken again
    shrunk_ = idle > kLeast && idle > kTimes * usual_;
    if (shrunk_ && until_ < kMostRuns) until_ *= 2;
    return shrunk_;
  }

 private:
  static constexpr std::uint64_t kLeast = 32 << 20;  // less is not worth the effort
  static constexpr std::uint64_t kTimes = 2;
  // Runs between two looks: twice as many after each time that it shrank, since runs that need the
  // memory after all take it again, page by page.
  static constexpr std::uint64_t kRuns = 8;
  static constexpr std::uint64_t kMostRuns = 1024;

  std::mutex mutex_;
  std::uint64_t runs_ = 0;  // since the last look
  std::uint64_t until_ = kRuns;
  std::uint64_t usual_ = 0;  // idle bytes that runs need
  bool shrunk_ = false;      // at the last look
};

}  // namespace tactus
