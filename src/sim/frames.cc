#include "sim/frames.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus {

std::uint32_t Frames::Pack(Place place) {
  return static_cast<std::uint32_t>(place.frame * PipelineGraph::kMostStages + place.stage.value());
}

Frames::Place Frames::Unpack(std::uint64_t packed) {
  return {static_cast<std::uint32_t>(packed / PipelineGraph::kMostStages),
          StageId{static_cast<StageId::rep>(packed % PipelineGraph::kMostStages)}};
}

void Frames::Arrive(std::uint32_t pipeline, TimePoint now) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(frames_.size()));
    frames_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Frame& frame = frames_[place];
  frame.pipeline = pipeline;
  frame.arrival = now;
  frame.dropped = false;
  ready_.clear();
  frame.progress.Begin(pipelines_[pipeline], ready_);
  for (const StageId stage : ready_) Send({place, stage}, now);
}

void Frames::Start(std::uint32_t subject, TimePoint now) {
  const Place place = Unpack(subject);
  Frame& frame = frames_[place.frame];
  --frame.starting;
  if (!frame.dropped) Send(place, now);
}

void Frames::Send(Place place, TimePoint now) {
  Frame& frame = frames_[place.frame];
  const PipelineStage& stage = pipelines_[frame.pipeline].stages[place.stage.value()];
  for (int i = 0; i < stage.count && !frame.dropped; ++i) {
    const RequestId id = world_.NextRequest();
    frame.sent.push_back({id, stage.model});
    world_.Send(stage.model, {.id = id,
                              .arrival = now,
                              .deadline = frame.arrival + stage.deadline,
                              .payload = std::uint64_t{1} + Pack(place)});
  }
}

Frames::Place Frames::Forget(const Request& request) {
  const Place place = Unpack(request.payload - 1);
  std::vector<Sent>& sent = frames_[place.frame].sent;
  const auto at = std::ranges::find(sent, request.id, &Sent::id);
  CHECK(at != sent.end(), "a request ends once");
  *at = sent.back();
  sent.pop_back();
  return place;
}

void Frames::Answered(const Request& request, TimePoint at) {
  const Place place = Forget(request);
  Frame& frame = frames_[place.frame];
  if (frame.dropped) return;
  const Pipeline& pipeline = pipelines_[frame.pipeline];
  const bool last = pipeline.graph.next(place.stage).empty();
  if (!last && at > request.deadline) return Drop(place, at);
  ready_.clear();
  if (frame.progress.Answer(place.stage, ready_)) {
    const bool in_time = at <= frame.arrival + pipeline.slo;
    Record(place, at, in_time ? FrameOutcome::kOnTime : FrameOutcome::kLate);
    free_.push_back(place.frame);
    return;
  }
  for (const StageId stage : ready_) {
    ++frame.starting;
    heap_.Push(at, EventClass::kStage, Pack({place.frame, stage}));
  }
}

void Frames::Refused(const Request& request, TimePoint now) {
  const Place place = Forget(request);
  if (!frames_[place.frame].dropped) Drop(place, now);
}

void Frames::Drop(Place place, TimePoint at) {
  frames_[place.frame].dropped = true;
  dropped_.push_back(place.frame);
  Record(place, at, FrameOutcome::kDropped);
}

bool Frames::Settle() {
  bool any = false;
  for (const std::uint32_t place : dropped_) {
    Frame& frame = frames_[place];
    // What is cancelled comes back as refused.
    cancelled_ = frame.sent;
    for (const Sent& request : cancelled_) world_.Cancel(request.model, request.id);
    any = any || !cancelled_.empty();
    CHECK(frame.sent.empty(), "what is cancelled ends at once");
    if (frame.starting == 0) free_.push_back(place);
  }
  std::erase_if(dropped_, [&](std::uint32_t place) { return frames_[place].starting == 0; });
  return any;
}

void Frames::Record(Place place, TimePoint ended, FrameOutcome outcome) {
  const Frame& frame = frames_[place.frame];
  records_.push_back({.arrival = frame.arrival,
                      .ended = ended,
                      .pipeline = frame.pipeline,
                      .stage = place.stage.value(),
                      .outcome = outcome});
}

std::vector<FrameRecord> Frames::Take() && {
  Settle();
  CHECK(free_.size() == frames_.size(), "every frame ends");
  return std::move(records_);
}

}  // namespace tactus
