// Which frames of a source are wanted at all: every n-th, and no more than so many a second.
#pragma once

#include <cstdint>
#include <optional>

#include "base/serving_time.h"
#include "stream/frame.h"

namespace tactus {

class FramePace {
 public:
  // `every` >= 1; `most_rate` 0: as many as come.
  FramePace(int every, double most_rate)
      : every_(every), interval_(most_rate > 0 ? FromSeconds(1 / most_rate) : Duration{}) {}

  // Why the next frame of the source is not wanted; nothing where it is. `captured` never goes
  // back.
  std::optional<FrameEnd> Refuses(TimePoint captured) {
    if (count_++ % static_cast<std::uint64_t>(every_) != 0) return FrameEnd::kEvery;
    if (interval_ == Duration{}) return std::nullopt;
    // A tenth of the interval of leeway: frames come with jitter, and a camera of 10 fps must not
    // lose every other frame at 10 fps.
    if (captured < due_ - interval_ / 10) return FrameEnd::kPaced;
    // A frame that comes late does not make the next one late, but a gap earns no burst.
    due_ = captured < due_ + interval_ ? due_ + interval_ : captured + interval_;
    return std::nullopt;
  }

 private:
  const int every_;
  const Duration interval_;
  std::uint64_t count_ = 0;
  TimePoint due_{-kNever.time_since_epoch()};  // of the next frame that is wanted
};

}  // namespace tactus
