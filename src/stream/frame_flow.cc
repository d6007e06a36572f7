#include "stream/frame_flow.h"

#include <algorithm>
#include <utility>

namespace tactus {

void FrameFlow::Offer(TimePoint captured, std::unique_ptr<Picture> picture) {
  const std::uint64_t number = ++counts_.read;
  if (picture == nullptr) {
    ++counts_.of(FrameEnd::kCorrupt);
    return;
  }
  if (const auto refused = pace_.Refuses(captured)) {
    ++counts_.of(*refused);
    return;
  }
  Frame frame{number, captured, captured + slo_, std::move(picture)};
  if (queue_.Push(std::move(frame))) ++counts_.of(FrameEnd::kNewer);
}

std::optional<Frame> FrameFlow::Take(TimePoint now) {
  if (in_flight_ >= most_in_flight_) return std::nullopt;
  const Duration fastest = keeps_stale_ ? Duration{} : Fastest(now);
  // The oldest have the earliest deadlines.
  while (queue_.oldest() != nullptr && now + fastest > queue_.oldest()->deadline) {
    queue_.PopOldest();
    ++counts_.of(FrameEnd::kStale);
  }
  auto frame = queue_.PopNewest();
  if (frame) ++in_flight_;
  return frame;
}

FrameEnd FrameFlow::End(const Frame& frame, FrameEnd end, TimePoint sent, TimePoint now) {
  --in_flight_;
  if (end == FrameEnd::kServed && now > frame.deadline) end = FrameEnd::kLate;
  ++counts_.of(end);
  if (end == FrameEnd::kServed || end == FrameEnd::kLate) {
    answers_[next_answer_++ % answers_.size()] = {now, now - sent};
  }
  return end;
}

void FrameFlow::Clear() {
  while (queue_.PopOldest()) ++counts_.of(FrameEnd::kStopped);
}

Duration FrameFlow::Fastest(TimePoint now) const {
  std::optional<Duration> least;
  for (const AnswerTime& answer : answers_) {
    if (answer.at < now - kRemembered) continue;
    least = least ? std::min(*least, answer.took) : answer.took;
  }
  return least.value_or(Duration{});
}

}  // namespace tactus
