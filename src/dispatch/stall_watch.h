// Stalls: single batches that take far longer than they should, because something else had the
// processor. They are no drift, and no ratio shows them. A request that comes at any instant finds
// the machine in a batch that stalls with a probability that is their part of the time: where that
// is more than kBorne, the answer is a reserve that all but this part would fit into.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/serving_time.h"

namespace tactus {

class StallWatch {
 public:
  // A batch ended at `now` that should have taken `expected`. True where the reserve is another.
  bool Learn(Duration expected, Duration took, TimePoint now) {
    Turn(now);
    Duration& busy = busy_[second_ % kSeconds];
    busy = std::min(busy + took, Seconds(100'000));
    const Duration excess = took - expected;
    const bool stalled = excess > std::max(expected / 2, kLeast);
    if (stalled) {
      stalls_[next_] = {now, excess, took};
      next_ = (next_ + 1) % kStalls;
    }
    if (!stalled && !turned_) return false;
    turned_ = false;
    const Duration before = reserve_;
    reserve_ = Needed(now);
    return reserve_ != before;
  }

  Duration reserve() const { return reserve_; }

  static constexpr double kBorne = 0.01;

 private:
  static constexpr std::size_t kSeconds = 10;  // that it looks back
  static constexpr std::size_t kStalls = 64;
  static constexpr Duration kLeast = Millis(1);

  struct Stall {
    TimePoint at{Duration::min()};
    Duration excess{};
    Duration took{};
  };

  void Turn(TimePoint now) {
    const auto second = static_cast<std::size_t>(std::max((now - kStart) / Seconds(1), 0l));
    turned_ = turned_ || second != second_;
    for (std::size_t i = 0; second_ < second && i < kSeconds; ++i) {
      busy_[++second_ % kSeconds] = Duration{};
    }
    second_ = second;
  }

  // The least excess, in whole milliseconds, beyond which the stalls are borne.
  Duration Needed(TimePoint now) const {
    Duration busy{};
    for (const Duration each : busy_) busy += each;
    const auto borne =
        Duration{static_cast<Duration::rep>(kBorne * static_cast<double>(busy.count()))};
    const TimePoint since = now - Seconds(static_cast<std::int64_t>(kSeconds));
    Duration needed{};
    for (const Stall& candidate : stalls_) {
      if (candidate.at < since || candidate.excess <= needed) continue;
      Duration beyond{};  // the time of this stall and of longer ones
      for (const Stall& other : stalls_) {
        if (other.at >= since && other.excess >= candidate.excess) beyond += other.took;
      }
      if (beyond > borne) needed = candidate.excess;
    }
    return (needed + Millis(1) - Nanos(1)) / Millis(1) * Millis(1);
  }

  Duration reserve_{};
  std::size_t second_ = 0;
  bool turned_ = false;
  std::array<Duration, kSeconds> busy_{};  // by second
  std::array<Stall, kStalls> stalls_{};
  std::size_t next_ = 0;
};

}  // namespace tactus
