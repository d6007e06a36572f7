#include "dispatch/dispatcher.h"

#include <algorithm>

namespace tactus {
namespace {

using Kind = JournalRecord::Kind;

JournalRecord Record(const Dispatch& d) {
  return {.kind = Kind::kDispatch,
          .exit = static_cast<std::uint16_t>(d.exit.value()),
          .model = d.model.value(),
          .lane = d.lane.value(),
          .count = static_cast<std::uint32_t>(d.batch)};
}
JournalRecord Record(const Drop& d) {
  return {.kind = Kind::kDrop,
          .detail = static_cast<std::uint8_t>(d.reason),
          .model = d.model.value(),
          .count = static_cast<std::uint32_t>(d.count)};
}
JournalRecord Record(const Preempt& p) {
  return {.kind = Kind::kPreempt, .lane = p.lane.value(), .id = p.batch.value()};
}

TimePoint ExpectedFree(const Lane& lane, TimePoint now) {
  TimePoint free_at = now;
  for (const RunningBatch& batch : lane.running()) free_at = std::max(free_at, batch.expected_end);
  return free_at;
}

}  // namespace

Dispatcher::Dispatcher(DispatcherOptions options, std::vector<LaneSpec> lanes, Policy& policy,
                       Outbox& outbox, Journal* journal)
    : options_(options),
      policy_(policy),
      learner_(LearnerOf(policy)),
      outbox_(outbox),
      journal_(journal),
      served_models_(std::make_shared<ServedModels>()) {
  CHECK(!lanes.empty(), "a dispatcher without lanes can serve nothing");
  if (options_.follow.on) followed_.emplace(options_.follow);
  for (const LaneSpec& spec : lanes) {
    Lane& lane = lanes_.emplace_back();
    lane.id = LaneId{static_cast<LaneId::rep>(lanes_.size() - 1)};
    lane.device = spec.device;
    lane.lane_class = spec.lane_class;
    lane.fraction = spec.fraction;
    lane.slots = spec.slots;
    lane.serves = spec.serves;
    allowed_.push_back(spec.serves);
    lacking_.emplace_back();
    lane.batches = FixedVector<RunningBatch>(spec.slots);
    slots_.emplace_back(spec.slots);
  }
}

void Dispatcher::Configure(std::shared_ptr<const ServedModels> served_models) {
  CHECK(served_models->models.size() == served_models->profile.models(),
        "one profile row per model");
  CHECK(served_models->models.size() >= queues_.size(),
        "a model keeps its id; unload, do not erase");
  if (journal_ != nullptr) journal_->Configured(*served_models);
  MakeRoom(*served_models);
  served_models_ = std::move(served_models);
  if (followed_) TakeProfile();
  FindQuickest();
  DropUnloaded();
  for (std::vector<ModelId>& lacking : lacking_) {
    std::erase_if(lacking, [&](ModelId m) { return !served_models_->models[m.value()].loaded; });
  }
  PlaceModels();
  // What is unmeetable may have changed with the profile: look again at the next step.
  if (options_.expiry != Expiry::kNever && waiting_ > 0) next_expiry_ = TimePoint{};
  policy_.Prepare(view());
}

void Dispatcher::Adopt(std::shared_ptr<const Plan> plan) {
  if (journal_ != nullptr) journal_->Adopted(plan.get());
  plan_ = std::move(plan);
  if (PlaceModels()) policy_.Prepare(view());
  policy_.OnPlan(view());
}

bool Dispatcher::PlaceModels() {
  bool changed = false;
  const std::size_t models = served_models_->models.size();
  for (Lane& lane : lanes_) {
    const std::size_t i = lane.id.value();
    ModelSet serves = allowed_[i];
    const auto insert = [&](ModelId m) {
      const bool lacks = std::ranges::find(lacking_[i], m) != lacking_[i].end();
      if (m.value() < models && allowed_[i].contains(m) && !lacks) serves.Insert(m);
    };
    if (plan_ != nullptr) {
      serves = ModelSet::None(models);
      const std::size_t planned = i < plan_->lanes.size() ? plan_->lanes[i].entries.size() : 0;
      for (std::size_t e = 0; e < planned; ++e) insert(plan_->lanes[i].entries[e].model);
    } else if (!lacking_[i].empty()) {
      serves = ModelSet::None(models);
      for (ModelId::rep m = 0; m < models; ++m) insert(ModelId{m});
    }
    if (serves == lane.serves) continue;
    lane.serves = std::move(serves);
    changed = true;
  }
  return changed;
}

// All storage is taken here, so that nothing allocates while requests are served.
void Dispatcher::MakeRoom(const ServedModels& served_models) {
  int max_batch = 1;
  for (std::size_t i = 0; i < served_models.models.size(); ++i) {
    const Model& model = served_models.models[i];
    if (!model.loaded) continue;
    CHECK(model.max_batch <= served_models.profile.max_batch(ModelId{static_cast<ModelId::rep>(i)}),
          "the profile must cover the largest batch");
    max_batch = std::max(max_batch, model.max_batch);
  }
  std::size_t places = 0;
  for (std::vector<Slot>& slots : slots_) {
    for (Slot& slot : slots) {
      ++places;
      if (slot.requests.capacity() >= static_cast<std::size_t>(max_batch)) continue;
      FixedVector<Request> larger(max_batch);
      for (const Request& request : slot.requests) larger.push_back(request);
      slot.requests = std::move(larger);
    }
  }
  // Beside the waiting requests a queue must be able to take back all that run.
  const std::size_t room = options_.queue_capacity + places * max_batch;
  queues_.reserve(served_models.models.size());
  for (RequestQueue& queue : queues_) {
    if (queue.capacity() >= room) continue;
    RequestQueue larger(room);
    for (std::size_t i = 0; i < queue.size(); ++i) larger.Push(queue[i]);
    queue = std::move(larger);
  }
  while (queues_.size() < served_models.models.size()) queues_.emplace_back(room);
}

void Dispatcher::FindQuickest() {
  quickest_.assign(served_models_->models.size(), Duration{});
  for (ModelId::rep i = 0; i < quickest_.size(); ++i) FindQuickest(ModelId{i});
}

void Dispatcher::FindQuickest(ModelId model) {
  if (!served_models_->models[model.value()].loaded) return;
  Duration quickest = Duration::max();
  for (const Lane& lane : lanes_) {
    if (!allowed_[lane.id.value()].contains(model)) continue;
    quickest = std::min(quickest, profile().Quickest(model, lane.lane_class));
  }
  quickest_[model.value()] = quickest;
}

void Dispatcher::DropUnloaded() {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (served_models_->models[i].loaded) continue;
    RejectFront(ModelId{static_cast<ModelId::rep>(i)}, static_cast<int>(queues_[i].size()),
                DropReason::kUnloaded);
  }
  for (std::vector<Slot>& slots : slots_) {
    for (Slot& slot : slots) {
      if (slot.used && !served_models_->models[slot.batch.model.value()].loaded)
        slot.orphaned = true;
    }
  }
}

TimePoint Dispatcher::LatestStart(ModelId model, const Request& request) const {
  switch (options_.expiry) {
    case Expiry::kNever:
      return kNever;
    case Expiry::kPassed:
      return request.deadline;
    case Expiry::kUnmeetable:
      if (quickest_[model.value()] == Duration::max()) return TimePoint{Duration::min()};
      return request.deadline - quickest_[model.value()];
  }
  return kNever;
}

void Dispatcher::Arrive(ModelId model, const Request& request) {
  Write({.kind = Kind::kArrive,
         .model = model.value(),
         .shape = request.shape,
         .priority = request.priority,
         .id = request.id.value(),
         .at = request.arrival,
         .deadline = request.deadline});
  const std::size_t i = model.value();
  if (i >= queues_.size() || !served_models_->models[i].loaded) {
    return outbox_.Reject(model, request, DropReason::kUnloaded);
  }
  const TimePoint latest_start = LatestStart(model, request);
  if (request.arrival > latest_start) return outbox_.Reject(model, request, DropReason::kExpired);
  if (queues_[i].size() >= options_.queue_capacity || !queues_[i].Push(request)) {
    return outbox_.Reject(model, request, DropReason::kQueueFull);
  }
  ++waiting_;
  next_expiry_ = std::min(next_expiry_, latest_start);
  policy_.OnArrive(model, request);
}

void Dispatcher::Finish(LaneId lane_id, BatchId batch, const BatchReport& report, TimePoint now) {
  Write({.kind = Kind::kFinish,
         .detail = static_cast<std::uint8_t>(report.status),
         .lane = lane_id.value(),
         .id = batch.value(),
         .at = now,
         .deadline = report.started,
         .ended = report.ended,
         .upload = report.upload});
  Slot* slot = FindSlot(lane_id, batch);
  CHECK(slot != nullptr, "an engine reports each batch exactly once");
  Lane& lane = lanes_[lane_id.value()];
  for (std::size_t i = 0; i < lane.batches.size(); ++i) {
    if (lane.batches[i].id != batch) continue;
    const RunningBatch done = lane.batches[i];
    lane.batches.SwapErase(i);
    if (learner_ != nullptr) learner_->OnBatchDone(lane_id, done, report, now);
    break;
  }
  lane.free_at = ExpectedFree(lane, now);
  if (report.status == BatchStatus::kLost) lane.open = false;
  policy_.OnLaneChange(lane);
  --running_;
  const bool stopped = report.status == BatchStatus::kAborted && slot->preempted;
  if (stopped || report.status == BatchStatus::kLost) {
    Requeue(*slot);
  } else {
    slot->batch.requests = slot->requests;
    outbox_.Complete(slot->batch, report);
  }
  slot->used = false;
  if (followed_) Follow(*slot, lane, report, now);
}

void Dispatcher::Requeue(const Slot& slot) {
  const ModelId model = slot.batch.model;
  for (const Request& request : slot.requests) {
    if (slot.orphaned) {
      outbox_.Reject(model, request, DropReason::kUnloaded);
      continue;
    }
    CHECK(queues_[model.value()].Push(request), "Configure left room for all that run");
    ++waiting_;
    next_expiry_ = std::min(next_expiry_, LatestStart(model, request));
  }
  if (!slot.orphaned) policy_.OnQueueChange(model);
}

void Dispatcher::Abort(Slot& slot) {
  if (slot.aborting) return;
  slot.aborting = true;
  outbox_.Abort(slot.batch.lane, slot.id);
}

void Dispatcher::RejectFront(ModelId model, int count, DropReason reason) {
  RequestQueue& queue = queues_[model.value()];
  for (int i = 0; i < count; ++i) outbox_.Reject(model, queue[i], reason);
  queue.PopFront(count);
  waiting_ -= count;
}

void Dispatcher::Cancel(ModelId model, RequestId request) {
  Write({.kind = Kind::kCancel, .model = model.value(), .id = request.value()});
  if (model.value() >= queues_.size()) return;
  if (const auto waiting = queues_[model.value()].Remove(request)) {
    --waiting_;
    policy_.OnQueueChange(model);
    outbox_.Reject(model, *waiting, DropReason::kCancelled);
    return;
  }
  CancelRunning(model, request);
}

bool Dispatcher::CancelRunning(ModelId model, RequestId request) {
  for (std::vector<Slot>& slots : slots_) {
    for (Slot& slot : slots) {
      if (!slot.used || slot.batch.model != model) continue;
      for (std::size_t i = 0; i < slot.requests.size(); ++i) {
        if (slot.requests[i].id != request) continue;
        const Request gone = slot.requests[i];
        slot.requests.SwapErase(i);
        outbox_.Reject(model, gone, DropReason::kCancelled);
        // Nobody waits for this batch any more: give the lane back early.
        if (slot.requests.empty()) Abort(slot);
        return true;
      }
    }
  }
  return false;
}

void Dispatcher::SetLaneOpen(LaneId lane, bool open) {
  Write({.kind = Kind::kLane, .detail = open, .lane = lane.value()});
  lanes_[lane.value()].open = open;
  policy_.OnLaneChange(lanes_[lane.value()]);
}

void Dispatcher::SetLaneHolds(LaneId lane, ModelId model, bool holds) {
  Write({.kind = Kind::kHolding, .detail = holds, .model = model.value(), .lane = lane.value()});
  std::vector<ModelId>& lacking = lacking_[lane.value()];
  std::erase(lacking, model);
  if (!holds) lacking.push_back(model);
  if (PlaceModels()) policy_.Prepare(view());
}

void Dispatcher::SetLaneShare(LaneId id, LaneClass lane_class, double fraction) {
  Lane& lane = lanes_[id.value()];
  CHECK(!lane.open && lane.batches.empty(), "a lane that serves stays what it is");
  if (journal_ != nullptr) journal_->Reshaped({id, lane_class, fraction});
  lane.lane_class = lane_class;
  lane.fraction = fraction;
  FindQuickest();
  // What is unmeetable may have changed: look again at the next step.
  if (options_.expiry != Expiry::kNever && waiting_ > 0) next_expiry_ = TimePoint{};
  policy_.Prepare(view());
}

TimePoint Dispatcher::Step(TimePoint now) {
  Write({.kind = Kind::kStep, .at = now});
  TimePoint next = kNever;
  if (followed_) {
    followed_->Relax(now, [&](ModelId m, LaneClass c) { TakeRatio(m, c, now); });
    next = followed_->next_relax();
  }
  ExpireUnmeetable(now);
  const View world = view();
  // A policy may spend each waiting request and each slot once, and each batch once more if it
  // preempts; anything beyond that is a policy that does not come to rest.
  std::size_t budget = 2 * (waiting_ + running_) + 16 * lanes_.size() + 64;
  for (;;) {
    CHECK(budget-- > 0, "the policy does not come to rest");
    const Decision decision = policy_.Decide(world, now);
    if (const auto* dispatch = std::get_if<Dispatch>(&decision)) {
      Validate(*dispatch);
      if (!ExpireUnmeetableOf(*dispatch, now)) CarryOut(*dispatch, now);
    } else if (const auto* drop = std::get_if<Drop>(&decision)) {
      CarryOut(*drop);
    } else if (const auto* preempt = std::get_if<Preempt>(&decision)) {
      CarryOut(*preempt);
    } else {
      const TimePoint until = std::get<Wait>(decision).until;
      Write({.kind = Kind::kWait, .at = until});
      CHECK(until > now, "a policy that waits for the present would be asked forever");
      if (waiting_ > 0) next = std::min(next, std::max(next_expiry_, now) + Nanos(1));
      return std::min(until, next);
    }
  }
}

void Dispatcher::Validate(const Dispatch& d) const {
  CHECK(d.lane.value() < lanes_.size() && d.model.value() < queues_.size(),
        "unknown lane or model");
  const Lane& lane = lanes_[d.lane.value()];
  const RequestQueue& queue = queues_[d.model.value()];
  CHECK(lane.HasFreeSlot(), "dispatch to a lane without a free slot");
  CHECK(lane.serves.contains(d.model), "dispatch to a lane that does not serve the model");
  CHECK(d.batch > 0 && d.batch <= served_models_->models[d.model.value()].max_batch, "batch size");
  CHECK(static_cast<int>(d.exit.value()) < served_models_->profile.exits(d.model), "exit");
  CHECK(queue.Batchable(d.batch) == d.batch, "the batch's requests do not fit together");
}

void Dispatcher::CarryOut(const Dispatch& d, TimePoint now) {
  Write(Record(d));
  Lane& lane = lanes_[d.lane.value()];
  RequestQueue& queue = queues_[d.model.value()];
  const Duration latency = profile().Latency(d.model, d.exit, d.batch, lane.lane_class);
  policy_.OnPopFront(d.model, d.batch);
  Slot& slot = FreeSlot(d.lane);
  slot.used = true;
  slot.preempted = slot.aborting = slot.orphaned = false;
  slot.id = BatchId{next_batch_++};
  slot.alone = lane.batches.empty();
  if (!slot.alone) {
    for (Slot& neighbour : slots_[d.lane.value()]) neighbour.alone = false;
  }
  slot.profiled = served_models_->profile.Latency(d.model, d.exit, d.batch, lane.lane_class);
  slot.requests.clear();
  const TimePoint deadline = queue.front().deadline;
  const int priority = queue.Priority(d.batch, served_models_->models[d.model.value()].priority);
  for (int i = 0; i < d.batch; ++i) slot.requests.push_back(queue[i]);
  queue.PopFront(d.batch);
  waiting_ -= d.batch;
  ++running_;
  slot.batch = {slot.id, d.model, d.exit, d.lane, now, now + latency, slot.requests};
  lane.batches.push_back(
      {slot.id, d.model, d.exit, d.batch, now, now + latency, deadline, priority});
  lane.free_at = ExpectedFree(lane, now);
  policy_.OnLaneChange(lane);
  outbox_.Launch(slot.batch);
}

void Dispatcher::CarryOut(const Drop& d) {
  Write(Record(d));
  CHECK(d.model.value() < queues_.size(), "unknown model");
  const std::size_t waiting = queues_[d.model.value()].size();
  CHECK(d.count > 0 && static_cast<std::size_t>(d.count) <= waiting, "drop count");
  policy_.OnPopFront(d.model, d.count);
  RejectFront(d.model, d.count, d.reason);
}

void Dispatcher::CarryOut(const Preempt& p) {
  Write(Record(p));
  CHECK(p.lane.value() < lanes_.size(), "unknown lane");
  Slot* slot = FindSlot(p.lane, p.batch);
  CHECK(slot != nullptr, "preempting a batch that does not run");
  CHECK(!slot->preempted, "a batch is preempted once");
  slot->preempted = true;
  Abort(*slot);
}

// A queue is in deadline order, so with one latency per model its unmeetable requests are a prefix.
// `next_expiry_` only ever errs on the early side, so most steps do not look at the queues at all.
void Dispatcher::ExpireUnmeetable(TimePoint now) {
  if (options_.expiry == Expiry::kNever || now <= next_expiry_) return;
  next_expiry_ = kNever;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const ModelId model{static_cast<ModelId::rep>(i)};
    const RequestQueue& queue = queues_[i];
    int count = 0;
    while (static_cast<std::size_t>(count) < queue.size() &&
           LatestStart(model, queue[count]) < now) {
      ++count;
    }
    if (count > 0) {
      policy_.OnPopFront(model, count);
      RejectFront(model, count, DropReason::kExpired);
    }
    if (!queue.empty()) next_expiry_ = std::min(next_expiry_, LatestStart(model, queue.front()));
  }
}

// Under overload the head of a queue can just be met alone, and is late in the batch that is
// chosen; so would be the next head, and every batch after it. Those go, and the policy decides
// anew for the rest, which the batch still serves in time.
bool Dispatcher::ExpireUnmeetableOf(const Dispatch& d, TimePoint now) {
  if (options_.expiry != Expiry::kUnmeetable) return false;
  const LaneClass lane_class = lanes_[d.lane.value()].lane_class;
  const TimePoint end = now + profile().Latency(d.model, d.exit, d.batch, lane_class);
  const RequestQueue& queue = queues_[d.model.value()];
  int unmeetable = 0;
  while (unmeetable < d.batch && queue[unmeetable].deadline < end) ++unmeetable;
  if (unmeetable == 0) return false;
  policy_.OnPopFront(d.model, unmeetable);
  RejectFront(d.model, unmeetable, DropReason::kExpired);
  return true;
}

Dispatcher::Slot* Dispatcher::FindSlot(LaneId lane, BatchId batch) {
  for (Slot& slot : slots_[lane.value()]) {
    if (slot.used && slot.id == batch) return &slot;
  }
  return nullptr;
}

Dispatcher::Slot& Dispatcher::FreeSlot(LaneId lane) {
  for (Slot& slot : slots_[lane.value()]) {
    if (!slot.used) return slot;
  }
  CHECK(false, "the lane said that it had a free slot");
  std::abort();
}

}  // namespace tactus
