// How long what is ready waits for an I/O thread: a call that has come, an answer that is to go.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/serving_time.h"

namespace tactus {

// Thread-safe; a note that is lost to another thread's does no harm.
class LoopDelay {
 public:
  // Something waited so long.
  void Note(std::chrono::nanoseconds waited) {
    const std::int64_t x = std::max<std::int64_t>(waited.count(), 0);
    const std::int64_t mean = mean_.load(std::memory_order_relaxed);
    const std::int64_t next_mean = mean + (x - mean) / kMeanOf;
    mean_.store(next_mean, std::memory_order_relaxed);
    // One of kOneOf is longer: the steps up that it takes are as many as the others take down.
    const std::int64_t step = next_mean / kStepsOfMean;
    const std::int64_t most = most_.load(std::memory_order_relaxed);
    most_.store(std::clamp(most + (x > most ? (kOneOf - 1) * step : -step), next_mean,
                           kMostMeans * next_mean),
                std::memory_order_relaxed);
  }

  // What all but one of forty things of late did not exceed, and at most ten times their mean. 0
  // before anything was noted.
  std::chrono::nanoseconds Most() const {
    return std::chrono::nanoseconds(most_.load(std::memory_order_relaxed));
  }
  // For a call on its way in and its answer on its way out.
  Duration BothWays() const { return 2 * std::chrono::duration_cast<Duration>(Most()); }

 private:
  static constexpr std::int64_t kOneOf = 40;
  static constexpr std::int64_t kMostMeans = 10;
  static constexpr std::int64_t kMeanOf = 64;  // the last so many
  static constexpr std::int64_t kStepsOfMean = 64;

  std::atomic<std::int64_t> mean_{0};
  std::atomic<std::int64_t> most_{0};
};

}  // namespace tactus
