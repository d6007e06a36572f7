// When a source that was lost is tried again.
#pragma once

#include <algorithm>
#include <optional>

#include "base/serving_time.h"

namespace tactus {

struct ReconnectOptions {
  Duration interval = Seconds(1);  // before the first attempt
  int attempts = 0;                // in a row without a frame; 0: for ever
};

// The wait doubles with every attempt that brings no frame, to at most kMostIntervals.
class Reconnect {
 public:
  static constexpr int kMostIntervals = 16;

  explicit Reconnect(ReconnectOptions options) : options_(options) {}

  // The source was lost, or could not be opened: how long to wait before the next attempt. Nothing:
  // give up.
  std::optional<Duration> Lost() {
    if (options_.attempts > 0 && tried_ >= options_.attempts) return std::nullopt;
    ++tried_;
    const Duration wait = options_.interval * factor_;
    factor_ = std::min(factor_ * 2, kMostIntervals);
    return wait;
  }
  // A frame came.
  void Arrived() {
    tried_ = 0;
    factor_ = 1;
  }

 private:
  const ReconnectOptions options_;
  int tried_ = 0;
  int factor_ = 1;
};

}  // namespace tactus
