#include "hindsight/hindsight.h"

#include <algorithm>

namespace tactus {
namespace {

// Beyond this much of what was expected, a batch was slow.
constexpr double kSlow = 1.2;
// While so much of the lanes' time is taken, there is no room for more.
constexpr double kTaken = 0.9;

bool IsSlow(const RanBatch& batch) {
  return ToMillis(batch.ended - batch.decided) > kSlow * ToMillis(batch.expected);
}

int PriorityOf(const Request& request, const Model& model) {
  return request.priority > 0 ? static_cast<int>(request.priority) : model.priority;
}

ExitId Deepest(const Model& model) {
  return ExitId{static_cast<ExitId::rep>(std::max(model.exit_count(), 1) - 1)};
}

}  // namespace

Hindsight::Hindsight(std::vector<LaneSpec> lanes)
    : lanes_(std::move(lanes)), turns_(lanes_.size()) {}

void Hindsight::LaneOpened(LaneId lane, bool open, TimePoint now) {
  turns_[lane.value()].push_back({now, std::nullopt, open});
}

void Hindsight::LaneHolds(LaneId lane, ModelId model, bool holds, TimePoint now) {
  turns_[lane.value()].push_back({now, model, holds});
}

void Hindsight::Configured(std::shared_ptr<const ServedModels> served) {
  served_ = std::move(served);
}

void Hindsight::Launched(const Batch& batch) {
  const Model& model = served_->models[batch.model.value()];
  places_[batch.id.value()] = batches_.size();
  const std::size_t exit = batch.exit.value();
  int priority = kLowestPriority;
  for (const Request& request : batch.requests) {
    priority = std::min(priority, PriorityOf(request, model));
  }
  batches_.push_back({.model = Kept(model.name),
                      .exit = Kept(exit < model.exits.size() ? model.exits[exit].name : "1"),
                      .lane = batch.lane,
                      .rows = static_cast<int>(batch.requests.size()),
                      .priority = priority,
                      .decided = batch.start,
                      .started = batch.start,
                      .expected = batch.expected_end - batch.start});
}

void Hindsight::Finished(BatchId id, const BatchReport& report) {
  RanBatch& batch = batches_[places_.at(id.value())];
  batch.started = report.started;
  batch.ended = report.ended;
  longest_ = std::max(longest_, batch.ended - batch.decided);
  ModelMisses& counts = models_[*batch.model];
  if (report.status == BatchStatus::kOk) ++counts.batches;
  if (report.status == BatchStatus::kOk && IsSlow(batch)) ++counts.slow;
  // The dispatcher closes the lane of a batch that was lost.
  if (report.status == BatchStatus::kLost) LaneOpened(batch.lane, false, report.ended);
}

void Hindsight::Answered(const Batch& batch, const BatchReport& report) {
  const std::size_t place = places_.at(batch.id.value());
  if (report.status != BatchStatus::kLost) places_.erase(batch.id.value());
  const RanBatch& ran = batches_[place];
  ModelMisses& counts = models_[*ran.model];
  for (const Request& request : batch.requests) {
    const bool failed = report.status != BatchStatus::kOk;
    if (!failed && report.ended <= request.deadline) {
      ++counts.in_time;
      continue;
    }
    const Outcome outcome = failed ? Outcome::kError : Outcome::kLate;
    Miss miss = MissOf(batch.model, request, report.ended, outcome);
    miss.batch = ran;
    miss.lacked = std::max(report.ended - request.deadline, Duration{});
    const auto took = [&](ExitId exit, int rows) {
      return report.started + LatencyOf(batch.model, exit, rows) <= request.deadline;
    };
    const bool alone = ran.rows > 1 && took(batch.exit, 1);
    const bool shallow = batch.exit.value() > 0 && took(ExitId{0}, ran.rows);
    const bool slow = IsSlow(ran) && ran.decided + ran.expected <= request.deadline;
    Add(std::move(miss), failed    ? MissCause::kFailed
                         : slow    ? MissCause::kSlowRun
                         : alone   ? MissCause::kBatch
                         : shallow ? MissCause::kExit
                                   : MissCause::kWaited);
  }
}

void Hindsight::GivenUp(ModelId model, const Request& request, DropReason reason, TimePoint now) {
  if (reason == DropReason::kCancelled) return;
  Miss miss = MissOf(model, request, now, OutcomeOf(reason));
  miss.lacked = std::max(now + miss.quickest - request.deadline, Duration{});
  Add(std::move(miss), reason == DropReason::kQueueFull  ? MissCause::kQueueFull
                       : reason == DropReason::kUnloaded ? MissCause::kUnloaded
                                                         : MissCause::kWaited);
}

Duration Hindsight::LatencyOf(ModelId model, ExitId exit, int rows) const {
  if (rows > served_->profile.max_batch(model)) return {};  // it is not loaded any more
  Duration least = Duration::max();
  for (const LaneSpec& lane : lanes_) {
    least = std::min(least, served_->profile.Latency(model, exit, rows, lane.lane_class));
  }
  return least;
}

Miss Hindsight::MissOf(ModelId id, const Request& request, TimePoint end, Outcome outcome) {
  const Model& model = served_->models[id.value()];
  return {.request = request.id,
          .id = id,
          .model = Kept(model.name),
          .priority = PriorityOf(request, model),
          .arrival = request.arrival,
          .deadline = request.deadline,
          .end = end,
          .outcome = outcome,
          .quickest = LatencyOf(id, ExitId{0}, 1),
          .deepest = LatencyOf(id, Deepest(model), 1)};
}

void Hindsight::Add(Miss miss, MissCause cause) {
  const bool has_a_reason = cause < MissCause::kTooShort;
  const bool too_short = miss.arrival + miss.quickest > miss.deadline;
  miss.cause = !has_a_reason && too_short ? MissCause::kTooShort : cause;
  ModelMisses& counts = models_[*miss.model];
  ++(miss.outcome == Outcome::kLate      ? counts.late
     : miss.outcome == Outcome::kError   ? counts.failed
     : miss.outcome == Outcome::kExpired ? counts.expired
                                         : counts.shed);
  misses_.push_back(std::move(miss));
}

void Hindsight::Conclude() {
  for (Miss& miss : misses_) {
    miss.busy = BusyOf(miss);
    if (miss.cause == MissCause::kWaited && miss.busy >= kTaken) miss.cause = MissCause::kBusy;
    const TimePoint to = miss.batch ? miss.batch->started : miss.end;
    const bool waited = miss.cause == MissCause::kWaited || miss.cause == MissCause::kBusy;
    const bool lost = to > miss.arrival && Offered(miss.id, miss.arrival, to) <= Duration{};
    if (waited && lost) miss.cause = MissCause::kNoLane;
    ++models_[*miss.model].causes[static_cast<std::size_t>(miss.cause)];
  }
}

std::vector<RanBatch> Hindsight::Meanwhile(const Miss& miss) const {
  // Until it ran itself.
  const TimePoint to = miss.batch ? miss.batch->started : miss.end;
  const auto decided_before = [](const RanBatch& batch, TimePoint at) {
    return batch.decided < at;
  };
  auto it =
      std::lower_bound(batches_.begin(), batches_.end(), miss.arrival - longest_, decided_before);
  std::vector<RanBatch> meanwhile;
  for (; it != batches_.end() && it->decided < to; ++it) {
    if (it->ended > miss.arrival && it->started < to) meanwhile.push_back(*it);
  }
  return meanwhile;
}

Duration Hindsight::Offered(ModelId model, TimePoint from, TimePoint to) const {
  Duration offered{};
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    TimePoint since = from;
    bool open = true;
    bool holds = true;
    Duration taking{};
    for (const Turn& turn : turns_[lane]) {
      if (turn.of && *turn.of != model) continue;
      const TimePoint at = std::clamp(turn.at, from, std::max(from, to));
      if (open && holds) taking += at - since;
      since = at;
      (turn.of ? holds : open) = turn.yes;
    }
    if (open && holds) taking += std::max(to - since, Duration{});
    offered += taking * lanes_[lane].slots;
  }
  return offered;
}

double Hindsight::BusyOf(const Miss& miss) const {
  const TimePoint to = miss.batch ? miss.batch->started : miss.end;
  const Duration all = Offered(miss.id, miss.arrival, to);
  if (all <= Duration{}) return 0;
  Duration taken{};
  for (const RanBatch& batch : Meanwhile(miss)) {
    taken += std::min(batch.ended, to) - std::max(batch.decided, miss.arrival);
  }
  return std::min(1.0, ToMillis(taken) / ToMillis(all));
}

std::vector<Miss> Hindsight::Worst(std::size_t count, const std::string& model) const {
  std::vector<Miss> worst;
  for (const Miss& miss : misses_) {
    if (model.empty() || *miss.model == model) worst.push_back(miss);
  }
  const auto further = [](const Miss& a, const Miss& b) {
    return a.lacked != b.lacked ? a.lacked > b.lacked : a.request < b.request;
  };
  const std::size_t kept = std::min(count, worst.size());
  std::ranges::partial_sort(worst, worst.begin() + static_cast<std::ptrdiff_t>(kept), further);
  worst.resize(kept);
  return worst;
}

}  // namespace tactus
