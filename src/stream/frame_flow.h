// One stream's frames between its source and the pipeline: which are wanted, which wait, which are
// sent, and what became of each. Without a thread or a clock: the instant is a parameter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/serving_time.h"
#include "stream/frame.h"
#include "stream/frame_pace.h"
#include "stream/frame_queue.h"

namespace tactus {

struct FlowOptions {
  int every = 1;              // every n-th frame
  double most_rate = 0;       // 0: as many as come
  int queue = 2;              // frames that wait at most
  int in_flight = 1;          // frames at the server at most
  Duration slo = Seconds(1);  // from capture to answer
  bool keeps_stale = false;  // sent however slow the last answers were: each frame of a file counts
};

class FrameFlow {
 public:
  explicit FrameFlow(const FlowOptions& options)
      : slo_(options.slo),
        most_in_flight_(options.in_flight),
        keeps_stale_(options.keeps_stale),
        pace_(options.every, options.most_rate),
        queue_(static_cast<std::size_t>(options.queue)) {}

  // The source brought a frame. A null `picture` could not be decoded.
  void Offer(TimePoint captured, std::unique_ptr<Picture> picture);
  // The newest frame whose deadline can still be met, to be sent now; nothing where none waits or
  // as many as may be are in flight. Each frame taken must End.
  std::optional<Frame> Take(TimePoint now);
  // What became of a frame that was taken. `sent`: when it was. For kServed and kLate the time from
  // there to `now` is what the server takes; kServed past the deadline is counted as kLate. What it
  // was counted as.
  FrameEnd End(const Frame& frame, FrameEnd end, TimePoint sent, TimePoint now);
  // The stream ends: what waits is counted as kStopped.
  void Clear();

  const FrameCounts& counts() const { return counts_; }
  std::size_t waiting() const { return queue_.size(); }
  int in_flight() const { return in_flight_; }
  // Whether a frame that came now would push out another.
  bool full() const { return queue_.full(); }
  // Whether Take may have something.
  bool may_take() const { return queue_.size() > 0 && in_flight_ < most_in_flight_; }

 private:
  // The fastest of the last answers; zero where there was none lately.
  Duration Fastest(TimePoint now) const;

  // An answer says for so long how fast the server is. Where all frames are stale there are no
  // answers, and then the next frame finds out.
  static constexpr Duration kRemembered = Seconds(5);
  struct AnswerTime {
    TimePoint at{-kNever.time_since_epoch()};
    Duration took{};
  };

  const Duration slo_;
  const int most_in_flight_;
  const bool keeps_stale_;
  FramePace pace_;
  FrameQueue queue_;
  int in_flight_ = 0;
  FrameCounts counts_;
  std::array<AnswerTime, 16> answers_{};
  std::size_t next_answer_ = 0;
};

}  // namespace tactus
