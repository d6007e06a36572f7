// When a request is due. Clients, proxies on the way and the model's owner may each limit its time;
// they meet here, and docs/deadlines.md lists them.
#pragma once

#include <cstdint>
#include <optional>

#include "base/serving_time.h"

namespace tactus {

// How long a call may take, counted from its arrival: the shortest of what anybody said.
class TimeLimit {
 public:
  // A limit that nobody lives to see is none; it also keeps sums of times from overflowing.
  static constexpr Duration kLongest = Seconds(std::int64_t{366} * 24 * 3600);

  void Tighten(std::optional<Duration> limit) {
    if (!limit || *limit > kLongest) return;
    if (!shortest_ || *limit < *shortest_) shortest_ = limit;
  }
  // Nothing where there is no limit.
  std::optional<Duration> shortest() const { return shortest_; }

 private:
  std::optional<Duration> shortest_;
};

// The deadline of a request that arrived at `received` for a model that promises an answer within
// `slo`. A client can only tighten what the model says.
TimePoint DeadlineOf(TimePoint received, Duration slo, const TimeLimit& limit);

}  // namespace tactus
