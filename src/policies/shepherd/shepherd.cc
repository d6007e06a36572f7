#include "policies/shepherd/shepherd.h"

#include <algorithm>
#include <tuple>

namespace tactus {

void Shepherd::Prepare(const View& view) {
  lost_.Prepare(view);
  std::size_t places = 0;
  for (const Lane& lane : view.lanes) places += lane.slots;
  stopping_.reserve(places);
}

void Shepherd::OnBatchDone(LaneId, const RunningBatch& batch, const BatchReport&, TimePoint) {
  std::erase_if(stopping_, [&](const Stopping& s) { return s.batch == batch.id; });
}

bool Shepherd::IsStopping(BatchId batch) const {
  return std::any_of(stopping_.begin(), stopping_.end(),
                     [batch](const Stopping& s) { return s.batch == batch; });
}

bool Shepherd::HasLaneComing(ModelId m) const {
  return std::any_of(stopping_.begin(), stopping_.end(),
                     [m](const Stopping& s) { return s.made_way_for == m; });
}

Shepherd::Candidate Shepherd::MakeCandidate(const View& view, ModelId m, LaneClass c,
                                            TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  const ExitId exit = FinalExit(view.profile, m);
  const TimePoint deadline = queue.front().deadline;
  int batch = queue.Batchable(LargestBatch(view, m));
  while (batch > 0 && now + view.profile.Latency(m, exit, batch, c) > deadline) --batch;
  if (batch == 0) return {};
  return {m, batch, deadline - view.profile.Latency(m, exit, batch, c)};
}

Decision Shepherd::Decide(const View& view, TimePoint now) {
  if (const auto drop = lost_.Find(view, now)) return *drop;
  if (const auto dispatch = Start(view, now)) return *dispatch;
  if (const auto preempt = Stop(view, now)) return *preempt;
  return Wait{lost_.next()};
}

std::optional<Dispatch> Shepherd::Start(const View& view, TimePoint now) const {
  if (FirstFreeLane(view.lanes) == nullptr) return std::nullopt;
  Candidate best;
  const Lane* best_lane = nullptr;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    if (view.queues[i].empty()) continue;
    const Lane* lane = FirstFreeLane(view.lanes, m);
    if (lane == nullptr) continue;
    const Candidate made = MakeCandidate(view, m, lane->lane_class, now);
    if (made.batch == 0) continue;  // too slow a lane
    if (best_lane != nullptr && std::tuple(-made.batch, made.latest, m) >=
                                    std::tuple(-best.batch, best.latest, best.model)) {
      continue;
    }
    best = made;
    best_lane = lane;
  }
  if (best_lane == nullptr) return std::nullopt;
  return Dispatch{.model = best.model,
                  .exit = FinalExit(view.profile, best.model),
                  .batch = best.batch,
                  .lane = best_lane->id};
}

std::optional<Preempt> Shepherd::Stop(const View& view, TimePoint now) {
  if (options_.factor == 0) return std::nullopt;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    if (view.queues[i].empty() || HasLaneComing(m)) continue;
    const RunningBatch* victim = nullptr;
    LaneId victim_lane;
    for (const Lane& lane : view.lanes) {
      if (!lane.open || !lane.serves.contains(m)) continue;
      const Candidate made = MakeCandidate(view, m, lane.lane_class, now);
      for (const RunningBatch& batch : lane.running()) {
        if (batch.model == m || made.batch < options_.factor * batch.batch) continue;
        // Never for one that is no larger, whatever the factor: two would stop each other forever.
        if (made.batch <= batch.batch) continue;
        if (IsStopping(batch.id)) continue;
        if (victim != nullptr && std::pair(batch.batch, now - batch.started) >=
                                     std::pair(victim->batch, now - victim->started)) {
          continue;
        }
        victim = &batch;
        victim_lane = lane.id;
      }
    }
    if (victim == nullptr) continue;
    stopping_.push_back({victim->id, m});
    return Preempt{.lane = victim_lane, .batch = victim->id};
  }
  return std::nullopt;
}

}  // namespace tactus
