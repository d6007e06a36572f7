// How much of a device low levels may use together: Strait's cap (Section 3.3 and Appendix A.1). It
// rises by `step` each `interval` and falls back to `least` when the highest level misses a
// deadline. A function of the time since then, so it needs no timer.
#pragma once

#include <algorithm>

#include "base/serving_time.h"

namespace tactus {

struct ThrottleOptions {
  double least = 0.75;  // of the device's throughput, at the start and after a miss
  double most = 1;
  double step = 0.0025;
  Duration interval = Millis(100);
};

class Throttle {
 public:
  explicit Throttle(const ThrottleOptions& options) : options_(options) {}

  double Cap(TimePoint now) const {
    const auto steps = static_cast<double>((now - missed_) / options_.interval);
    return std::min(options_.most, options_.least + options_.step * steps);
  }
  void Miss(TimePoint now) { missed_ = now; }

 private:
  const ThrottleOptions options_;
  TimePoint missed_ = kStart;
};

}  // namespace tactus
