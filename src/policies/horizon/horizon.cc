#include "policies/horizon/horizon.h"

#include <algorithm>
#include <utility>

#include "core/feasible.h"

namespace tactus {
namespace {

// A batch has grown when a request of it costs no more than this times what one of b* does.
constexpr double kNearly = 1.1;
// So many schedules are made for one question at the most.
constexpr std::size_t kMostPassedOver = 4;
// Where requests come because others were answered, a schedule of everything has more of them in
// time; among more models or lanes than these it costs too much.
constexpr std::size_t kFewTogether = 16;
// Less time than this is none to wait for.
constexpr double kAtOnce = 1e-4;

}  // namespace

Horizon::Horizon(std::string name, std::unique_ptr<Policy> beside)
    : Policy({.name = std::move(name), .least = LeastService{.quickest_exit = true}}),
      beside_(std::move(beside)),
      learner_(*LearnerOf(*beside_)) {}

void Horizon::Prepare(const View& view) {
  shared_ = std::any_of(view.lanes.begin(), view.lanes.end(),
                        [](const Lane& lane) { return lane.slots > 1; });
  if (shared_) return beside_->Prepare(view);
  const std::size_t models = view.models.size();
  planned_ = false;
  std::optional<int> priority;
  for (const Model& model : view.models) {
    if (!model.loaded) continue;
    planned_ |= model.exit_count() > 1 || priority.value_or(model.priority) != model.priority;
    priority = model.priority;
  }
  few_ = models <= kFewTogether && view.lanes.size() <= kFewTogether;
  kinds_.Prepare(view);
  seen_.Prepare(view.profile);
  demand_.Prepare(view, kinds_);
  schedule_.Prepare(view, kinds_);
  match_.Resize(models, kinds_.kind_of_lane(), kinds_.size());
  spare_.Prepare(kinds_);
  underway_ = 0;
  running_.assign(view.lanes.size(), 0);
  waiting_.assign(models, 0);
  for (const Lane& lane : view.lanes) OnLaneChange(lane);
  grown_.resize(kinds_.size());
  for (auto& grown : grown_) grown.Resize(models);
  spared_.resize(kinds_.size());
  for (auto& spared : spared_) spared.Resize(models);
  passed_over_.reserve(kMostPassedOver);
  offers_.assign(models * kinds_.size(), {});
  lost_.Resize(models);
  launching_.reset();
  touched_.assign(models, false);
  changed_.clear();
  changed_.reserve(models);
  TouchAll();
}

void Horizon::Touch(ModelId m) {
  if (touched_[m.value()]) return;
  touched_[m.value()] = true;
  changed_.push_back(m);
}

void Horizon::TouchAll() {
  for (std::size_t i = 0; i < touched_.size(); ++i) Touch(ModelId{static_cast<ModelId::rep>(i)});
}

void Horizon::OnArrive(ModelId m, const Request& request) {
  if (shared_) return beside_->OnArrive(m, request);
  review_ |= demand_.Count(m, request.arrival, underway_);
  ++underway_;
  ++waiting_[m.value()];
  Touch(m);
  if (request.priority == 0 || planned_) return;
  planned_ = true;
  TouchAll();
}

void Horizon::OnPopFront(ModelId m, int count) {
  if (shared_) return beside_->OnPopFront(m, count);
  const auto launched = std::exchange(launching_, std::nullopt);
  const bool served = launched && launched->model == m && launched->batch == count;
  if (!served) demand_.GiveUp(m, count);
  Touch(m);
}

void Horizon::OnQueueChange(ModelId m) { shared_ ? beside_->OnQueueChange(m) : Touch(m); }

void Horizon::OnLaneChange(const Lane& lane) {
  if (shared_) return beside_->OnLaneChange(lane);
  match_.SetFree(lane.id, lane.HasFreeSlot());
  spare_.SetFree(lane.id, lane.HasFreeSlot());
  int& running = running_[lane.id.value()];
  underway_ -= running;
  running = 0;
  for (const RunningBatch& batch : lane.running()) running += batch.batch;
  underway_ += running;
}

void Horizon::OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                          TimePoint now) {
  if (shared_) learner_.OnBatchDone(lane, batch, report, now);
}

// Whose batch, how large at the quickest exit, and in which span it may go.
std::optional<SymphonyCandidate> Horizon::MakeOffer(const View& view, ModelId m, std::uint32_t kind,
                                                    TimePoint now) {
  CountExamined();
  const Course& course = kinds_[kind].courses[m.value()];
  const Outlook& outlook = demand_.Of(kind, m);
  const RequestQueue& queue = view.queues[m.value()];
  // A schedule says itself who is left out.
  const CandidateOptions options{
      .lead = outlook.lead,
      .gather = planned_ || outlook.spared ? Gather::kPrefix : Gather::kWindow};
  auto made = MakeCandidate(queue, course.quickest(), options, outlook.target, now);
  if (!made) return made;
  if (outlook.depth > 0 && made->batch < course.max_batch()) {
    const Duration deep = course.at(outlook.depth)(made->batch + 1);
    made->exec = std::min(made->exec, queue[made->drop].deadline - deep - outlook.lead);
  }
  // On a slower lane heads may look lost that a quicker one can still serve.
  if (made->drop > 0 && kind != kinds_.QuickestFor(m)) made->exec = made->latest + Nanos(1);
  return made;
}

bool Horizon::Grown(const Course& course, const Outlook& outlook, int batch) const {
  if (batch >= outlook.target) return true;  // also where larger ones pay nothing
  const BatchCosts& costs = course.quickest();
  return ToSeconds(costs(batch)) * outlook.target <=
         kNearly * ToSeconds(costs(outlook.target)) * batch;
}

void Horizon::Refresh(const View& view, ModelId m, std::uint32_t kind, TimePoint now) {
  const auto made = MakeOffer(view, m, kind, now);
  OfferOf(m, kind) = made.value_or(SymphonyCandidate{});
  const Course& course = kinds_[kind].courses[m.value()];
  const bool grown = made && made->drop == 0 && Grown(course, demand_.Of(kind, m), made->batch);
  grown ? grown_[kind].Put(m.value(), made->latest) : grown_[kind].Erase(m.value());
  const bool spared = made && demand_.Of(kind, m).spared;
  spared ? spared_[kind].Put(m.value(), made->latest) : spared_[kind].Erase(m.value());
  if (planned_) return;
  made ? match_.Put(m, kind, *made) : match_.Erase(m, kind);
}

void Horizon::RefreshTouched(const View& view, TimePoint now) {
  seen_.Take(view.profile, [&](ModelId m) {
    kinds_.Follow(view, m);
    review_ = true;
  });
  if (std::exchange(review_, false)) {
    demand_.Review(view, kinds_);
    TouchAll();
  }
  for (const ModelId m : changed_) {
    touched_[m.value()] = false;
    for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
      if (kinds_[k].courses[m.value()].served()) Refresh(view, m, k, now);
    }
    const RequestQueue& queue = view.queues[m.value()];
    const auto size = static_cast<std::int64_t>(queue.size());
    underway_ += size - std::exchange(waiting_[m.value()], size);
    if (queue.empty()) {
      lost_.Erase(m.value());
    } else {  // where no lane serves the model, its requests are lost at once
      const Duration least = kinds_.Least(m);
      lost_.Put(m.value(), least == Duration::max() ? TimePoint{Duration::min()}
                                                    : queue.front().deadline - least);
    }
  }
  changed_.clear();
  demand_.NoteUnderway(underway_, now);
}

Decision Horizon::Launch(const Dispatch& dispatch) {
  launching_ = dispatch;
  return dispatch;
}

Decision Horizon::Decide(const View& view, TimePoint now) {
  if (shared_) {
    const std::uint64_t before = beside_->examined();
    const Decision decision = beside_->Decide(view, now);
    CountExamined(beside_->examined() - before);
    return decision;
  }
  if (!lost_.empty() && demand_.Pass(now)) review_ = true;
  RefreshTouched(view, now);
  TimePoint wake = kNever;
  if (!lost_.empty()) {
    if (lost_.top_key() < now) {
      return Drop{.model = ModelId{lost_.top()}, .count = 1, .reason = DropReason::kExpired};
    }
    wake = std::min(lost_.top_key(), std::max(demand_.quiet(), now)) + Nanos(1);
  }
  const bool together = few_ && demand_.answers_bring_requests();
  return planned_ || together ? TakePlanned(view, now, wake) : TakeLeastLatest(view, now, wake);
}

// Where nobody's time has come: of the batches that have grown, the one with the least latest
// start.
std::optional<Decision> Horizon::TakeSpare(const View& view, TimePoint now) {
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    const auto lane = spare_.Find(k, demand_.Needed(k));
    while (lane && !grown_[k].empty()) {
      const ModelId m{grown_[k].top()};
      if (grown_[k].top_key() < now) {
        Refresh(view, m, k, now);
        continue;
      }
      return Launch({.model = m,
                     .exit = FinalExit(view.profile, m),
                     .batch = OfferOf(m, k).batch,
                     .lane = *lane});
    }
  }
  return std::nullopt;
}

// Where one model floods the lanes: of those that it is to spare, whoever could not wait any more
// for the longest batch that might be put before it. At its quickest exit, as there is no time for
// more where somebody is left out anyway.
std::optional<Decision> Horizon::TakeSpared(const View& view, std::uint32_t kind, TimePoint now) {
  if (spared_[kind].empty()) return std::nullopt;
  const auto& lanes = kinds_[kind].lanes;
  const auto lane = std::find_if(lanes.begin(), lanes.end(),
                                 [&](LaneId id) { return view.lanes[id.value()].HasFreeSlot(); });
  if (lane == lanes.end()) return std::nullopt;
  while (!spared_[kind].empty() && spared_[kind].top_key() - demand_.Longest(kind) <= now) {
    const ModelId m{spared_[kind].top()};
    if (spared_[kind].top_key() < now) {
      Refresh(view, m, kind, now);
      continue;
    }
    const int batch = OfferOf(m, kind).batch;
    if (planned_ && !MostUrgent(view, m, batch)) return std::nullopt;
    const int exit = kinds_[kind].courses[m.value()].hull.front();
    return Launch({.model = m,
                   .exit = ExitId{static_cast<ExitId::rep>(exit)},
                   .batch = batch,
                   .lane = *lane});
  }
  return std::nullopt;
}

// Whether nobody's next batch has a higher priority: priorities come before shares.
bool Horizon::MostUrgent(const View& view, ModelId m, int batch) const {
  const auto priority = [&](std::size_t i, int of) {
    return view.queues[i].Priority(of, view.models[i].priority);
  };
  const int own = priority(m.value(), batch);
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    if (!view.queues[i].empty() && priority(i, 1) < own) return false;
  }
  return true;
}

Decision Horizon::TakeLeastLatest(const View& view, TimePoint now, TimePoint wake) {
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    if (const auto spared = TakeSpared(view, k, now)) return *spared;
  }
  for (;;) {
    const Match::Outcome outcome = match_.Next(now);
    switch (outcome.kind) {
      case Match::Outcome::Kind::kStale:
        Refresh(view, outcome.model, outcome.group, now);
        continue;
      case Match::Outcome::Kind::kNothing:
        if (const auto early = TakeSpare(view, now)) return *early;
        return Wait{std::min(outcome.until, wake)};
      case Match::Outcome::Kind::kGrant:
        break;
    }
    const SymphonyCandidate& offer = OfferOf(outcome.model, outcome.group);
    if (offer.drop > 0) {
      return Drop{.model = outcome.model, .count = offer.drop, .reason = DropReason::kShed};
    }
    return Launch({.model = outcome.model,
                   .exit = FinalExit(view.profile, outcome.model),
                   .batch = offer.batch,
                   .lane = outcome.lane});
  }
}

bool Horizon::MayGo(ModelId m, std::uint32_t kind, bool spare, TimePoint now) {
  const SymphonyCandidate& offer = OfferOf(m, kind);
  if (offer.batch == 0) return false;
  return offer.exec <= now || (spare && grown_[kind].contains(m.value()));
}

Decision Horizon::TakePlanned(const View& view, TimePoint now, TimePoint wake) {
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    const auto& lanes = kinds_[k].lanes;
    const auto lane = std::find_if(lanes.begin(), lanes.end(),
                                   [&](LaneId id) { return view.lanes[id.value()].HasFreeSlot(); });
    if (lane == lanes.end()) continue;
    if (const auto spared = TakeSpared(view, k, now)) return *spared;
    const bool spare = spare_.Find(k, demand_.Needed(k)).has_value();
    bool ready = false;
    for (std::size_t i = 0; i < view.queues.size(); ++i) {
      const ModelId m{static_cast<ModelId::rep>(i)};
      if (view.queues[i].empty() || !kinds_[k].courses[i].served()) continue;
      if (OfferOf(m, k).latest < now) Refresh(view, m, k, now);
      if (MayGo(m, k, spare, now)) {
        ready = true;
      } else if (OfferOf(m, k).batch > 0) {
        wake = std::min(wake, OfferOf(m, k).exec);
      }
    }
    if (!ready) continue;
    if (const auto decision = Plan(view, k, *lane, spare, now)) return *decision;
    wake = std::min(wake, postponed_);
  }
  return Wait{wake};
}

// The first that is ready and not left out, nor better served later; where all are left out, the
// first that is ready, as the lane has nothing better to do.
std::optional<Decision> Horizon::Plan(const View& view, std::uint32_t kind, LaneId lane, bool spare,
                                      TimePoint now) {
  const auto& batches = schedule_.batches();
  const auto ready = [&](const PlannedBatch& b) {
    return b.first >= 0 && MayGo(b.model, kind, spare, now);
  };
  // Batches of one queue may be planned in another order: rows of one call have one deadline, and a
  // longer batch must start earlier.
  const auto after_another = [&](const PlannedBatch& b) {
    return b.first > 0 && std::ranges::any_of(batches, [&](const PlannedBatch& other) {
             return other.model == b.model && other.first >= 0 && other.first < b.first &&
                    !other.left_out;
           });
  };
  postponed_ = kNever;
  passed_over_.clear();
  for (;;) {
    schedule_.Make(view, kinds_[kind], kind, demand_, now);
    auto pick = std::find_if(batches.begin(), batches.end(), [&](const PlannedBatch& b) {
      return ready(b) && !b.left_out && !after_another(b) &&
             std::ranges::find(passed_over_, b.model) == passed_over_.end();
    });
    const bool postponing = pick != batches.end() || !passed_over_.empty();
    if (pick != batches.end() && pick->first > 0) {
      if (kind == kinds_.QuickestFor(pick->model)) {
        return Drop{.model = pick->model, .count = pick->first, .reason = DropReason::kShed};
      }
      pick = batches.end();
    }
    if (pick == batches.end() && passed_over_.empty()) {
      pick = std::find_if(batches.begin(), batches.end(),
                          [&](const PlannedBatch& b) { return ready(b) && b.first == 0; });
    }
    if (pick == batches.end()) return std::nullopt;
    const PlannedBatch go = *pick;
    const auto place = static_cast<std::size_t>(pick - batches.begin());
    const ExitId exit = schedule_.ExitFor(kinds_[kind], place);
    const auto later = postponing ? Postponed(go, kind, exit) : std::nullopt;
    if (!later || passed_over_.size() == kMostPassedOver) {
      return Launch({.model = go.model, .exit = exit, .batch = go.waiting, .lane = lane});
    }
    passed_over_.push_back(go.model);
    postponed_ = std::min(postponed_, now + *later);
  }
}

// How long the batch may still wait for the exit that the rates leave time for, where it would get
// a shallower one now, for the sake of others.
std::optional<Duration> Horizon::Postponed(const PlannedBatch& batch, std::uint32_t kind,
                                           ExitId exit) {
  const Course& course = kinds_[kind].courses[batch.model.value()];
  const Outlook& outlook = demand_.Of(kind, batch.model);
  const int wanted = course.hull[outlook.depth];
  if (static_cast<int>(exit.value()) >= wanted) return std::nullopt;
  const double left = batch.deadline + batch.margin -
                      ToSeconds(course.costs[wanted](batch.waiting)) - ToSeconds(outlook.lead);
  return left > kAtOnce ? std::optional(FromSeconds(left)) : std::nullopt;
}

}  // namespace tactus
