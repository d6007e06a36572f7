// The clock of the serving world. It has no now(): code that holds a TimePoint was handed it by a
// driver, so nothing below the drivers can tell simulated time from real time.
//
//   TimePoint deadline = arrival + Millis(50);
//   if (now + latency > deadline) ...
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

namespace tactus {

struct ServingTime {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<ServingTime>;
  static constexpr bool is_steady = true;
};

using Duration = ServingTime::duration;
using TimePoint = ServingTime::time_point;

// Later than every event. Not max(): adding a latency to it must not overflow.
inline constexpr TimePoint kNever{Duration{std::int64_t{1} << 62}};
inline constexpr TimePoint kStart{Duration{0}};

constexpr Duration Nanos(std::int64_t n) { return Duration{n}; }
constexpr Duration Micros(std::int64_t n) { return Duration{n * 1000}; }
constexpr Duration Millis(std::int64_t n) { return Duration{n * 1'000'000}; }
constexpr Duration Seconds(std::int64_t n) { return Duration{n * 1'000'000'000}; }

// Nearest nanosecond, so that a number read from a file means the same on every machine.
inline Duration FromMillis(double ms) { return Duration{std::llround(ms * 1e6)}; }
inline Duration FromSeconds(double s) { return Duration{std::llround(s * 1e9)}; }

constexpr double ToMillis(Duration d) { return static_cast<double>(d.count()) * 1e-6; }
constexpr double ToMicros(Duration d) { return static_cast<double>(d.count()) * 1e-3; }
constexpr double ToSeconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

}  // namespace tactus
