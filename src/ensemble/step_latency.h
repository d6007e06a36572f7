// What a step has needed of late, from when its call left the queue to its answer: by this the time
// that a request has left is divided. The wait in queues does not count: what is learned of a crowd
// would leave the first step no time, and keep the crowd's place empty. The median of the last
// seconds, smoothed, so that one slow batch moves nothing and a lasting change is there within a
// few seconds. Pure: the instant is a parameter.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/serving_time.h"

namespace tactus {

class StepLatency {
 public:
  // One answer, `took` after its step began.
  void Add(TimePoint now, Duration took) { samples_[next_++ % kMost] = {now, took}; }
  // Once for each second, say. Without an answer for two seconds it halves each time, for what was
  // slow once may be why nothing is tried any more; nothing where there was none for ten seconds.
  std::optional<Duration> Update(TimePoint now);

  static constexpr Duration kWindow = Seconds(10);
  static constexpr Duration kSilence = Seconds(2);

 private:
  static constexpr std::size_t kMost = 128;
  static constexpr double kNew = 0.5;  // share of the newest median

  struct Sample {
    TimePoint at;
    Duration took{};
  };
  std::array<Sample, kMost> samples_{};
  std::size_t next_ = 0;
  std::optional<Duration> smoothed_;
};

}  // namespace tactus
