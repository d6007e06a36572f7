#include "shards/model_shard.h"

#include <algorithm>

namespace tactus {
namespace {

constexpr LaneClass kClass{0};

// How far ahead the memory of an arrival's model is asked for; with thousands of models it is in no
// near cache.
constexpr std::size_t kAhead = 12;

std::size_t CountOf(const ShardPlace& place, std::size_t models) {
  return models > place.index ? (models - place.index - 1) / place.count + 1 : 0;
}

// At the final exit, up to the model's largest batch.
std::vector<Duration> Latencies(const ProfileTable& profile, ModelId m, int max_batch) {
  const ExitId last{static_cast<ExitId::rep>(profile.exits(m) - 1)};
  std::vector<Duration> latencies;
  for (int b = 1; b <= std::min(max_batch, profile.max_batch(m)); ++b) {
    latencies.push_back(profile.Latency(m, last, b, kClass));
  }
  return latencies;
}

}  // namespace

ModelShard::ModelShard(ShardPlace place, std::span<const Model> models, const ProfileTable& profile,
                       std::size_t lanes, const ShardOptions& options, CandidateMailbox& mailbox,
                       SpscRing<LaneAnswer>& answers, ShardOutbox& outbox)
    : place_(place),
      options_(options),
      lanes_(static_cast<int>(lanes)),
      mailbox_(mailbox),
      answers_(answers),
      outbox_(outbox),
      changed_(CountOf(place, models.size())) {
  std::size_t largest = 1;
  for (std::size_t i = place.index; i < models.size(); i += place.count) {
    latencies_.push_back(
        Latencies(profile, ModelId{static_cast<ModelId::rep>(i)}, models[i].max_batch));
    CHECK(!latencies_.back().empty(), "a model that is scheduled has a profile");
    largest = std::max(largest, latencies_.back().size());
    costs_.emplace_back(latencies_.back(), options.policy.delays);
    queues_.emplace_back(options.queue_capacity);
    slos_.push_back(models[i].slo);
    candidates_.push_back(options.policy.For(models[i].slo));
  }
  states_.resize(queues_.size());
  rates_.resize(Window() ? queues_.size() : 0, ArrivalRate(options.policy.rate_window));
  timers_.Resize(queues_.size());
  batch_ = FixedVector<Request>(largest);
}

void ModelShard::Arrive(std::span<const Arrival> arrivals) {
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (i + 2 * kAhead < arrivals.size()) {
      const std::uint32_t local = Local(arrivals[i + 2 * kAhead].model);
      __builtin_prefetch(&queues_[local], 1);
      __builtin_prefetch(&states_[local], 1);
    }
    if (i + kAhead < arrivals.size()) {
      const RequestQueue& queue = queues_[Local(arrivals[i + kAhead].model)];
      __builtin_prefetch(&queue[queue.size()], 1);
    }
    Arrive(arrivals[i].model, arrivals[i].request);
  }
}

void ModelShard::Arrive(ModelId m, const Request& request) {
  const std::uint32_t local = Local(m);
  RequestQueue& queue = queues_[local];
  if (request.deadline - costs_[local](1) < request.arrival) {
    return outbox_.Reject(m, request, DropReason::kExpired, request.arrival);
  }
  const std::size_t before = queue.size();
  if (!queue.Push(request)) {
    return outbox_.Reject(m, request, DropReason::kQueueFull, request.arrival);
  }
  ++waiting_;
  if (Window()) {
    CountArrival(local, request.arrival);
    return MarkChanged(local);  // it may let a head further back lead the batch
  }
  // Behind requests that did not fit, it changes nothing (the batch only shrinks with time), unless
  // it completes another full batch.
  const State& state = states_[local];
  const bool unseen = state.quiet ? request.shape == state.shape : before > state.batch;
  const bool behind = unseen && queue[before].id == request.id;
  if (!behind || queue.size() >= state.next_full) MarkChanged(local);
}

void ModelShard::CountArrival(std::uint32_t local, TimePoint at) {
  if (!rates_[local].Count(at)) return;
  states_[local].target =
      options_.policy.Target(costs_[local], slos_[local], rates_[local].per_second(), lanes_);
}

void ModelShard::MarkChanged(std::uint32_t local) {
  if (states_[local].changed) return;
  states_[local].changed = true;
  changed_.push_back(local);
}

void ModelShard::Cancel(ModelId m, RequestId request, TimePoint now) {
  const std::uint32_t local = Local(m);
  const auto gone = queues_[local].Remove(request);
  if (!gone) return;
  --waiting_;
  outbox_.Reject(m, *gone, DropReason::kCancelled, now);
  MarkChanged(local);
}

void ModelShard::RejectFront(std::uint32_t local, int count, DropReason reason, TimePoint now) {
  RequestQueue& queue = queues_[local];
  for (int i = 0; i < count; ++i) outbox_.Reject(Global(local), queue[i], reason, now);
  queue.PopFront(count);
  waiting_ -= count;
}

void ModelShard::Advance(TimePoint now) {
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    if (i + kAhead < changed_.size()) {
      const std::uint32_t local = changed_[i + kAhead];
      __builtin_prefetch(&queues_[local][0]);
      __builtin_prefetch(&costs_[local]);
      __builtin_prefetch(&candidates_[local]);
    }
    states_[changed_[i]].changed = false;
    Renew(changed_[i], now);
  }
  changed_.clear();
  // Renew moves the timer past `now`, so each model fires once.
  while (!timers_.empty() && timers_.top_key() <= now) Renew(timers_.top(), now);
}

std::optional<SymphonyCandidate> ModelShard::CandidateAfterDrops(std::uint32_t local,
                                                                 TimePoint now) {
  const RequestQueue& queue = queues_[local];
  const BatchCosts& costs = costs_[local];
  while (!queue.empty() && queue.front().deadline - costs(1) < now) {
    RejectFront(local, 1, DropReason::kExpired, now);
  }
  return MakeCandidate(queue, costs, candidates_[local], states_[local].target, now);
}

void ModelShard::Renew(std::uint32_t local, TimePoint now) {
  const auto candidate = CandidateAfterDrops(local, now);
  State& state = states_[local];
  const CandidateNote before = state.note;
  state.batch = candidate ? static_cast<std::uint32_t>(candidate->batch) : 0;
  state.next_full = ~std::uint32_t{0};
  state.quiet = false;
  state.note.batches = 0;
  if (!candidate) {
    timers_.Erase(local);
  } else {
    // Once `latest` has passed the batch shrinks. The queue's own head may be lost before.
    const bool schedulable = candidate->exec <= now;
    const TimePoint lost = queues_[local].front().deadline - costs_[local](1);
    const TimePoint changes =
        schedulable ? candidate->latest + Nanos(1) : LookAgain(local, *candidate, now);
    timers_.Put(local, std::min(changes, lost + Nanos(1)));
    if (schedulable) Announce(local, *candidate);
  }
  const bool news = state.answered || state.note.batches != before.batches ||
                    (before.batches > 0 && state.note.latest != before.latest);
  if (!news) return;
  state.answered = false;
  mailbox_.Write(Global(local), state.note);
}

TimePoint ModelShard::LookAgain(std::uint32_t local, const SymphonyCandidate& candidate,
                                TimePoint now) {
  const RequestQueue& queue = queues_[local];
  const BatchCosts& costs = costs_[local];
  const CandidateOptions& options = candidates_[local];
  const bool by_deadline =
      options.schedulable == Schedulable::kFrontrun || options.schedulable == Schedulable::kLatest;
  if (!by_deadline || Window()) return candidate.exec;
  // The more requests wait, the sooner; with one short of a full batch this is the soonest. With a
  // full one it is at once.
  const TimePoint soonest = queue.front().deadline - costs(costs.max_batch()) - options.lead;
  if (soonest <= now || queue.size() != static_cast<std::size_t>(candidate.batch)) {
    return candidate.exec;
  }
  State& state = states_[local];
  state.quiet = true;
  state.shape = queue.front().shape;
  state.next_full = static_cast<std::uint32_t>(costs.max_batch());
  return soonest;
}

void ModelShard::Announce(std::uint32_t local, const SymphonyCandidate& candidate) {
  const RequestQueue& queue = queues_[local];
  const auto full = static_cast<std::uint32_t>(costs_[local].max_batch());
  State& state = states_[local];
  state.note.latest = candidate.latest;
  state.note.since = std::max(candidate.exec, queue[candidate.drop + candidate.batch - 1].arrival);
  state.note.batches = 1;
  if (state.batch < full) return;
  // What is behind a full batch and full itself can go as well, on another lane.
  state.note.batches = (static_cast<std::uint32_t>(queue.size()) - candidate.drop) / full;
  state.next_full = (state.note.batches + 1) * full;
}

std::optional<SymphonyCandidate> ModelShard::CandidateToRun(std::uint32_t local, TimePoint now) {
  const auto candidate = CandidateAfterDrops(local, now);
  if (!candidate || candidate->exec > now) return std::nullopt;
  if (candidate->drop == 0) return candidate;
  RejectFront(local, candidate->drop, DropReason::kShed, now);
  const auto rest = CandidateAfterDrops(local, now);
  // The rank chose by `latest`: where that is another one now, it has to choose anew.
  const bool same = rest && rest->exec <= now && rest->latest == candidate->latest;
  return same ? rest : std::nullopt;
}

void ModelShard::OnGrants(std::span<const Grant> grants, TimePoint now) {
  for (std::size_t i = 0; i < grants.size(); ++i) {
    if (i + kAhead < grants.size()) {
      const std::uint32_t local = Local(grants[i + kAhead].model);
      __builtin_prefetch(&queues_[local]);
      __builtin_prefetch(&states_[local], 1);
    }
    if (i + kAhead / 4 < grants.size()) {
      const std::uint32_t local = Local(grants[i + kAhead / 4].model);
      for (int r = 0; r < 12; r += 2) __builtin_prefetch(&queues_[local][r]);
      __builtin_prefetch(&costs_[local]);
    }
    OnGrant(grants[i], now);
  }
}

void ModelShard::OnGrant(const Grant& grant, TimePoint now) {
  now = std::max(now, grant.at);
  const std::uint32_t local = Local(grant.model);
  const auto candidate = CandidateToRun(local, now);
  const TimePoint end = candidate ? Launch(local, grant, candidate->batch, now) : now;
  CHECK(answers_.TryPush(LaneAnswer{grant.lane, candidate.has_value(), end}),
        "one answer for each lane");
  State& state = states_[local];
  ++state.note.answered;
  state.answered = true;
  state.batch = 0;  // unknown until it is renewed
  state.quiet = false;
  MarkChanged(local);
}

TimePoint ModelShard::Launch(std::uint32_t local, const Grant& grant, int batch, TimePoint now) {
  RequestQueue& queue = queues_[local];
  batch_.clear();
  for (int i = 0; i < batch; ++i) batch_.push_back(queue[i]);
  queue.PopFront(batch);
  waiting_ -= batch;
  const TimePoint end = now + latencies_[local][batch - 1];
  outbox_.Launch({grant.model, grant.lane, now, end, grant.due, batch_});
  return end;
}

}  // namespace tactus
