#include "sim/world/pipeline_requests.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus {

PipelineRequests::Underway& PipelineRequests::At(PipelineRequestId id) {
  if (id.value() >= underway_.size()) underway_.resize(id.value() + 1);
  return underway_[id.value()];
}

void PipelineRequests::Arrive(std::uint32_t pipeline, TimePoint sent, TimePoint deadline,
                              TimePoint now, std::uint32_t call) {
  at_once_.clear();
  arriving_ = {.pipeline = pipeline, .sent = sent, .call = call};
  const PipelineRequestId id = flow_.Begin(pipeline, now, deadline);
  arriving_.reset();
  Underway& underway = At(id);
  underway.pipeline = pipeline;
  underway.sent = sent;
  underway.call = call;
  underway.arrival = arrived_[pipeline]++;
  for (const std::uint32_t place : at_once_) {
    runs_[place].queued = false;
    Send(place, now);
  }
}

void PipelineRequests::Start(const RunKey& run, TimePoint now, TimePoint deadline) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(runs_.size()));
    runs_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  runs_[place] = {.key = run, .deadline = deadline, .queued = true};
  At(run.request).runs.push_back(place);
  if (arriving_) {
    at_once_.push_back(place);
  } else {
    heap_.Push(now, EventClass::kStage, place);
  }
}

void PipelineRequests::Start(std::uint32_t subject, TimePoint now) {
  Run& run = runs_[subject];
  run.queued = false;
  if (run.ended) {
    free_.push_back(subject);
  } else {
    Send(subject, now);
  }
}

void PipelineRequests::Send(std::uint32_t place, TimePoint now) {
  Run& run = runs_[place];
  if (run.cancelled) return;  // before it was sent; Settle ends it
  const Pipeline& pipeline = flow_.pipelines()[At(run.key.request).pipeline];
  run.model = pipeline.stages[run.key.run.stage.value()].model;
  run.sent = world_.NextRequest();
  world_.Send(run.model, {.id = run.sent,
                          .arrival = now,
                          .deadline = run.deadline,
                          .payload = std::uint64_t{1} + place});
}

RunKey PipelineRequests::End(std::uint32_t place) {
  Run& run = runs_[place];
  CHECK(!run.ended, "a run ends once");
  run.ended = true;
  std::vector<std::uint32_t>& runs = At(run.key.request).runs;
  *std::ranges::find(runs, place) = runs.back();
  runs.pop_back();
  if (!run.queued) free_.push_back(place);
  return run.key;
}

void PipelineRequests::Answered(const Request& request, TimePoint at) {
  const RunKey key = End(static_cast<std::uint32_t>(request.payload - 1));
  const Underway& underway = At(key.request);
  flow_.Answered(key, rows_.Rows(underway.pipeline, underway.arrival, key.run), at);
}

void PipelineRequests::Refused(const Request& request, DropReason reason, TimePoint now) {
  flow_.Refused(End(static_cast<std::uint32_t>(request.payload - 1)), reason, now);
}

void PipelineRequests::Cancel(const RunKey& key) {
  for (const std::uint32_t place : At(key.request).runs) {
    if (runs_[place].key != key) continue;
    runs_[place].cancelled = true;
    cancelled_.push_back(place);
    return;
  }
  CHECK(false, "only what was started and has not ended is cancelled");
}

bool PipelineRequests::Settle(TimePoint now) {
  bool any = false;
  // What is cancelled comes back as refused, which ends it.
  for (std::size_t i = 0; i < cancelled_.size(); ++i) {
    const std::uint32_t place = cancelled_[i];
    const Run run = runs_[place];
    if (run.ended || !run.cancelled) continue;
    if (run.sent.valid()) {
      any = true;
      world_.Cancel(run.model, run.sent);
      CHECK(runs_[place].ended, "what is cancelled ends at once");
    } else {
      flow_.Refused(End(place), DropReason::kCancelled, now);
    }
  }
  cancelled_.clear();
  return any;
}

void PipelineRequests::Ended(const PipelineEnd& end) {
  const bool answered =
      end.outcome == PipelineOutcome::kOnTime || end.outcome == PipelineOutcome::kLate;
  // A request that is refused as it comes ends before it has a place.
  const Underway& request = arriving_ ? *arriving_ : At(end.request);
  const TimePoint sent = request.sent;
  const TimePoint told = world_.PipelineEnded(end.pipeline, request.call, answered, end.ended);
  const bool in_time = told <= sent + flow_.pipelines()[end.pipeline].slo;
  records_.push_back({.arrival = sent,
                      .ended = told,
                      .pipeline = end.pipeline,
                      .stage = end.stage.value(),
                      .outcome = !answered ? end.outcome
                                 : in_time ? PipelineOutcome::kOnTime
                                           : PipelineOutcome::kLate,
                      .items = end.items,
                      .items_lost = end.items_lost});
}

void PipelineRequests::RefuseUnread(std::uint32_t pipeline, TimePoint sent, TimePoint told) {
  records_.push_back(
      {.arrival = sent, .ended = told, .pipeline = pipeline, .outcome = PipelineOutcome::kDropped});
}

std::vector<PipelineRecord> PipelineRequests::Take(TimePoint now) && {
  Settle(now);
  CHECK(flow_.underway() == 0, "every pipeline request ends");
  return std::move(records_);
}

}  // namespace tactus
