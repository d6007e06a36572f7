#include "pipeline/flow.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "pipeline/budget.h"

namespace tactus {
namespace {

// kSpare: so many times what those behind a stage need is kept for them, since a stage that is late
// by a little is a loss there, and one that was early is none.
constexpr double kReserve = 1.5;
// ... but at most so much of the time that is left, as long as they can do with that: what was slow
// of late must not leave the first stage no time, or nothing would run and nothing better be
// learned.
constexpr double kMostReserved = 0.75;
// Who had less than so much of the SLO teaches the window nothing: its time was short before any
// other came.
constexpr double kTaught = 0.9;

using Kind = FlowRecord::Kind;

std::int64_t Ns(TimePoint at) { return at.time_since_epoch().count(); }

}  // namespace

Flow::Flow(std::vector<Pipeline> pipelines, FlowOutbox& outbox)
    : pipelines_(std::move(pipelines)), timing_(pipelines_.size()), outbox_(outbox) {
  for (std::uint32_t p = 0; p < pipelines_.size(); ++p) {
    std::vector<Duration> needs;
    std::vector<Duration> least;
    for (const PipelineStage& stage : pipelines_[p].stages) {
      needs.push_back(stage.need);
      least.push_back(stage.least);
    }
    timing_[p].least_behind = LeastAfter(pipelines_[p].graph, least);
    Adopt(p, needs);
  }
}

void Flow::Adopt(std::uint32_t pipeline, std::span<const Duration> needs) {
  const Pipeline& adopting = pipelines_[pipeline];
  CHECK(needs.size() == adopting.stages.size(), "every stage needs something");
  for (std::size_t s = 0; journal_ != nullptr && s < needs.size(); ++s) {
    Note(Kind::kNeed, {pipeline, static_cast<std::int64_t>(s), needs[s].count()});
  }
  std::vector<Duration> need;
  for (std::size_t s = 0; s < needs.size(); ++s) {
    // Of something, so that nobody divides by nothing.
    need.push_back(std::max({needs[s], adopting.stages[s].least, Nanos(1)}));
  }
  timing_[pipeline].behind = LeastAfter(adopting.graph, need);
  timing_[pipeline].need = std::move(need);
}

Duration Flow::LeastFrom(std::uint32_t pipeline, StageId stage) const {
  return pipelines_[pipeline].stages[stage.value()].least +
         timing_[pipeline].least_behind[stage.value()];
}

PipelineRequestId Flow::Begin(std::uint32_t pipeline, TimePoint now, TimePoint deadline,
                              StageMask wanted, PipelineEntry entry) {
  Note(Kind::kBegin, {pipeline, Ns(now), Ns(deadline), static_cast<std::int64_t>(wanted),
                      static_cast<std::int64_t>(entry)});
  if (free_.empty()) {
    free_.push_back(PipelineRequestId{static_cast<std::uint32_t>(requests_.size())});
    requests_.emplace_back();
  }
  const PipelineRequestId id = free_.back();
  free_.pop_back();
  Request& request = At(id);
  request.pipeline = pipeline;
  request.arrival = now;
  request.deadline = deadline;
  request.ended = false;
  request.in_vain = false;
  ready_.clear();
  request.progress.Begin(pipelines_[pipeline], ready_, wanted);
  if (Admit(request, entry)) {
    Start(id, now);
  } else {
    End(id, PipelineOutcome::kDropped, ready_.front().stage, now, true);
  }
  FreeIfDone(id);
  return id;
}

bool Flow::Admit(Request& request, PipelineEntry entry) {
  request.place = {};
  const bool counts = pipelines_[request.pipeline].deadlines == DeadlineRule::kSpare &&
                      entry == PipelineEntry::kByWindow;
  if (!counts) return true;
  AdmissionWindow& window = timing_[request.pipeline].window;
  if (window.IsFull()) return false;
  request.place = window.Enter();
  return true;
}

void Flow::Leave(const Request& request, PipelineOutcome outcome, TimePoint now) {
  if (request.place.inside == 0) return;
  const Duration slo = pipelines_[request.pipeline].slo;
  const bool taught = outcome != PipelineOutcome::kCancelled &&
                      ToSeconds(request.deadline - request.arrival) >= kTaught * ToSeconds(slo);
  using WindowEnd = AdmissionWindow::End;
  auto end = WindowEnd::kNeither;
  if (taught && outcome == PipelineOutcome::kOnTime) {
    end = request.in_vain ? WindowEnd::kInPart : WindowEnd::kInTime;
  } else if (taught && (request.in_vain || outcome == PipelineOutcome::kLate)) {
    end = WindowEnd::kInVain;
  }
  const double stayed = ToSeconds(now - request.arrival) / ToSeconds(slo);
  timing_[request.pipeline].window.Leave(request.place, end, stayed);
}

bool Flow::Redivides(const Request& request) const {
  const DeadlineRule rule = pipelines_[request.pipeline].deadlines;
  return rule == DeadlineRule::kRedivide || rule == DeadlineRule::kPersist ||
         rule == DeadlineRule::kSpare;
}

TimePoint Flow::StageDeadline(const Request& request, StageId stage, TimePoint now) const {
  if (!Redivides(request)) {
    const Duration after = pipelines_[request.pipeline].stages[stage.value()].deadline;
    return std::min(request.arrival + after, request.deadline);
  }
  const Timing& timing = timing_[request.pipeline];
  const Duration behind = timing.behind[stage.value()];
  const TimePoint part = Redivide(now, request.deadline, timing.need[stage.value()], behind);
  if (pipelines_[request.pipeline].deadlines != DeadlineRule::kSpare) return part;
  // As with kRedivide where less is left than all of them need; but never so little that it could
  // not wait for one batch and run in the next, as long as the quickest path fits behind it.
  const Duration least = pipelines_[request.pipeline].stages[stage.value()].least;
  const Duration least_behind = timing.least_behind[stage.value()];
  const TimePoint latest = request.deadline - least_behind;
  const double left = ToSeconds(request.deadline - now);
  const double reserve = std::min(kReserve * ToSeconds(behind), kMostReserved * left);
  const TimePoint spared = request.deadline - std::max(least_behind, FromSeconds(reserve));
  return std::max({part, spared, std::min(now + 2 * least, latest)});
}

bool Flow::IsUnmeetable(const Request& request, StageId stage, TimePoint from,
                        bool answered) const {
  const Duration least = answered ? timing_[request.pipeline].least_behind[stage.value()]
                                  : LeastFrom(request.pipeline, stage);
  return from + least > request.deadline;
}

bool Flow::IsRowAlone(const Pipeline& pipeline, StageId stage) {
  return pipeline.answer == AnswerRule::kEach && pipeline.levels.IsOfRows(stage);
}

// What is ready, in ready_. The first that is unmeetable may end the request, or make more ready.
void Flow::Start(PipelineRequestId id, TimePoint now) {
  std::vector<StageRun> ready;
  ready.swap(ready_);
  for (const StageRun run : ready) {
    if (At(id).ended) break;
    if (At(id).progress.IsWanted(run)) StartOne({id, run}, now);
  }
  ready.clear();
  ready.swap(ready_);  // which keeps the memory
}

void Flow::StartOne(const RunKey& key, TimePoint now) {
  Request& request = At(key.request);
  const TimePoint deadline = StageDeadline(request, key.run.stage, now);
  const bool unmeetable =
      now > deadline || (Redivides(request) && IsUnmeetable(request, key.run.stage, now, false));
  if (unmeetable) return Fail(key, Cause::kWantOfTime, now);
  ++request.running;
  request.progress.SetStarted(key.run, true);
  TellStart(key, now, deadline);
}

void Flow::TellStart(const RunKey& key, TimePoint now, TimePoint deadline) {
  Note(Kind::kStart, {key.request.value(), key.run.stage.value(), key.run.item, Ns(deadline)});
  outbox_.Start(key, now, deadline);
}

void Flow::TellCancel(const RunKey& key) {
  Note(Kind::kStop, {key.request.value(), key.run.stage.value(), key.run.item});
  outbox_.Cancel(key);
}

bool Flow::TakeBack(const RunKey& key) {
  Request& request = At(key.request);
  CHECK(request.running > 0, "an end of what was not started");
  --request.running;
  if (request.ended || !request.progress.IsWanted(key.run)) return false;
  request.progress.SetStarted(key.run, false);
  return true;
}

void Flow::Answered(const RunKey& key, int rows, TimePoint now) {
  Note(Kind::kAnswer, {key.request.value(), key.run.stage.value(), key.run.item, Ns(now), rows});
  if (!TakeBack(key)) return FreeIfDone(key.request);
  Request& request = At(key.request);
  const StageId stage = key.run.stage;
  const Pipeline& pipeline = pipelines_[request.pipeline];
  const bool last = std::ranges::none_of(pipeline.graph.next(stage), [&](StageId next) {
    return IsIn(request.progress.wanted(), next);
  });
  const bool late = Redivides(request) ? IsUnmeetable(request, stage, now, true)
                                       : now > StageDeadline(request, stage, now);
  // A last stage's answer is one, if late; a row among others is left out.
  if (late && (!last || IsRowAlone(pipeline, stage))) {
    Fail(key, Cause::kWantOfTime, now);
  } else {
    ready_.clear();
    request.progress.Answer(key.run, rows, ready_);
    Start(key.request, now);
    Complete(key.request, stage, now);
  }
  FreeIfDone(key.request);
}

void Flow::Refused(const RunKey& key, DropReason reason, TimePoint now) {
  Note(Kind::kRefuse, {key.request.value(), key.run.stage.value(), key.run.item, Ns(now),
                       static_cast<std::int64_t>(reason)});
  if (!TakeBack(key)) return FreeIfDone(key.request);
  Request& request = At(key.request);
  const StageId stage = key.run.stage;
  // Its part of the time was too short, the whole may not be: what those behind it do not need at
  // best is its own, once.
  if (reason == DropReason::kExpired &&
      pipelines_[request.pipeline].deadlines == DeadlineRule::kPersist &&
      !IsUnmeetable(request, stage, now, false) && request.progress.TakeSecondChance(key.run)) {
    ++request.running;
    request.progress.SetStarted(key.run, true);
    const Duration behind = timing_[request.pipeline].least_behind[stage.value()];
    return TellStart(key, now, request.deadline - behind);
  }
  const bool had_no_time = reason == DropReason::kExpired || reason == DropReason::kShed ||
                           reason == DropReason::kQueueFull;
  Fail(key, had_no_time ? Cause::kWantOfTime : Cause::kOther, now);
  FreeIfDone(key.request);
}

void Flow::Fail(const RunKey& key, Cause cause, TimePoint now) {
  Request& request = At(key.request);
  const bool first = pipelines_[request.pipeline].graph.before(key.run.stage).empty();
  request.in_vain |= cause == Cause::kWantOfTime && !first;
  if (!IsRowAlone(pipelines_[request.pipeline], key.run.stage)) {
    return End(key.request, PipelineOutcome::kDropped, key.run.stage, now);
  }
  Note(Kind::kLose, {key.request.value(), key.run.stage.value(), key.run.item});
  outbox_.Lost(key, now);
  ready_.clear();
  cancelled_.clear();
  request.progress.Lose(key.run, ready_, cancelled_);
  for (const StageRun run : cancelled_) TellCancel({key.request, run});
  Start(key.request, now);
  Complete(key.request, key.run.stage, now);
}

void Flow::Complete(PipelineRequestId id, StageId stage, TimePoint now) {
  const Request& request = At(id);
  if (request.ended || !request.progress.complete()) return;
  const bool in_time = now <= request.deadline;
  End(id, in_time ? PipelineOutcome::kOnTime : PipelineOutcome::kLate, stage, now);
}

void Flow::Cancel(PipelineRequestId id, TimePoint now) {
  Note(Kind::kLeave, {id.value(), Ns(now)});
  if (At(id).ended) return;
  End(id, PipelineOutcome::kCancelled, StageId{0}, now);
  FreeIfDone(id);
}

void Flow::End(PipelineRequestId id, PipelineOutcome outcome, StageId stage, TimePoint now,
               bool not_admitted) {
  Request& request = At(id);
  request.ended = true;
  Leave(request, outcome, now);
  Note(Kind::kEnd,
       {id.value(), static_cast<std::int64_t>(outcome), stage.value(), request.progress.items(),
        request.progress.items_lost(), request.progress.rows_cut()});
  outbox_.Ended({.request = id,
                 .pipeline = request.pipeline,
                 .outcome = outcome,
                 .arrival = request.arrival,
                 .ended = now,
                 .deadline = request.deadline,
                 .stage = stage,
                 .items = request.progress.items(),
                 .items_lost = request.progress.items_lost(),
                 .rows_cut = request.progress.rows_cut(),
                 .not_admitted = not_admitted});
  if (request.running == 0) return;
  cancelled_.clear();
  request.progress.Started(cancelled_);
  for (const StageRun run : cancelled_) TellCancel({id, run});
}

void Flow::FreeIfDone(PipelineRequestId id) {
  const Request& request = At(id);
  if (request.ended && request.running == 0) free_.push_back(id);
}

}  // namespace tactus
