// The one place where serving time meets real time. Serving time starts when the clock is made.
#pragma once

#include <chrono>

#include "base/serving_time.h"

namespace tactus {

class WallClock {
 public:
  using Real = std::chrono::steady_clock::time_point;

  WallClock() : origin_(std::chrono::steady_clock::now()) {}

  TimePoint Now() const { return At(std::chrono::steady_clock::now()); }

  // Instants too far away for a policy to add to are kNever, and back.
  TimePoint At(Real real) const {
    if (real >= origin_ + kNever.time_since_epoch()) return kNever;
    return TimePoint{std::chrono::duration_cast<Duration>(real - origin_)};
  }
  Real RealAt(TimePoint at) const {
    return at >= kNever ? Real::max() : origin_ + at.time_since_epoch();
  }

  // Milliseconds since 1970, for what people read.
  static std::uint64_t UnixMillis() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
  }

 private:
  Real origin_;
};

}  // namespace tactus
