// The recent past of a running system, from readings of its counters.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/serving_time.h"
#include "planners/autoscale/advice.h"

namespace tactus {

// Counters since the start; they never fall.
struct ServiceTotals {
  TimePoint at;
  std::int64_t good = 0;  // requests answered by their deadline
  std::int64_t bad = 0;   // late, shed, expired, failed; not those that their client cancelled
  Duration busy{};        // of all lanes together
  Duration available{};   // the time that the lanes were there, together
  std::vector<std::int64_t> batches;  // of each lane that ended; empty: not known
};

class LoadWindow {
 public:
  explicit LoadWindow(Duration length) : length_(length) {}

  // Readings come in the order of time, at any distance: a reader that looks often makes the window
  // no shorter, and takes no more memory.
  void Add(const ServiceTotals& totals);

  // What happened between the last reading and the youngest one that is at least `length` older;
  // the oldest while there is none so old. Nothing, all idle, before the second reading.
  LoadReading Read(int lanes) const;

  // Whether the readings span the window's length.
  bool Full() const {
    return readings_.size() >= 2 && readings_.back().at - readings_.front().at >= length_;
  }
  // Forgets all but this: the lanes have changed, and what other lanes did says nothing about them.
  void Restart(const ServiceTotals& totals) { readings_.assign(1, totals); }

 private:
  static constexpr int kMostReadings = 64;  // of one window's length

  const Duration length_;
  std::deque<ServiceTotals> readings_;  // oldest first; all but the first within the window
};

}  // namespace tactus
