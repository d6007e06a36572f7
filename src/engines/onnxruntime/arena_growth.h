// When a session is to give back memory that a run made it take. ONNX Runtime's arena keeps all
// that any run needed, so one huge call would hold gigabytes for as long as the model is loaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace tactus {

class ArenaGrowth {
 public:
  // A run begins, with inputs of so many bytes. Whether the arena is to shrink when it ends: where
  // a run since the last time was far larger than runs usually are. Thread-safe.
  bool ShrinksAfter(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto size = static_cast<double>(bytes);
    largest_ = std::max(largest_, size);
    const bool shrinks = largest_ > kLeast && largest_ > kTimes * usual_;
    usual_ += (size - usual_) / kRuns;
    if (shrinks) largest_ = 0;
    return shrinks;
  }
  // What it answered counts like what it was asked. Thread-safe.
  void Answered(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    largest_ = std::max(largest_, static_cast<double>(bytes));
  }

 private:
  static constexpr double kLeast = 4 << 20;  // what smaller runs need is not worth the effort
  static constexpr double kTimes = 4;
  static constexpr double kRuns = 16;  // that it takes until a size is usual, about

  std::mutex mutex_;
  double usual_ = 0;    // bytes of a run, of late
  double largest_ = 0;  // since the arena shrank
};

}  // namespace tactus
