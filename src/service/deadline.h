// Makes the deadline of a request. Clients, proxies and the model's owner may each limit its time;
// docs/reference/deadlines.md lists all limits.
#pragma once

#include <cstdint>
#include <optional>

#include "base/serving_time.h"

namespace tactus {

// How long a call may take, counted from its arrival: the shortest limit that was stated.
class TimeLimit {
 public:
  // A longer limit counts as none; this also keeps sums of times from overflowing.
  static constexpr Duration kLongest = Seconds(std::int64_t{366} * 24 * 3600);

  void Tighten(std::optional<Duration> limit) {
    if (!limit || *limit > kLongest) return;
    if (!shortest_ || *limit < *shortest_) shortest_ = limit;
  }
  // Whether it is over so long after the call's arrival.
  bool IsOver(Duration passed) const { return shortest_ && *shortest_ <= passed; }
  // Empty if there is no limit.
  std::optional<Duration> shortest() const { return shortest_; }

 private:
  std::optional<Duration> shortest_;
};

// The deadline of a request that arrived at `received`, for a model with this SLO. A client can
// only tighten it. The answer is due `way` earlier, but at most a quarter of its time.
TimePoint DeadlineOf(TimePoint received, Duration slo, const TimeLimit& limit, Duration way = {});

}  // namespace tactus
