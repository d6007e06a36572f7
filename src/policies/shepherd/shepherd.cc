#include "policies/shepherd/shepherd.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace tactus {

void Shepherd::Prepare(const View& view) {
  lost_.Prepare(view);
  std::size_t places = 0;
  for (const Lane& lane : view.lanes) places += lane.slots;
  stopping_.reserve(places);
}

// Forgets what has ended there.
void Shepherd::OnLaneChange(const Lane& lane) {
  std::erase_if(stopping_, [&](const Stopping& s) {
    return s.lane == lane.id &&
           std::ranges::find(lane.running(), s.batch, &RunningBatch::id) == lane.running().end();
  });
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

int Shepherd::SmallestRunning(const View& view) const {
  int smallest = std::numeric_limits<int>::max();
  for (const Lane& lane : view.lanes) {
    if (!lane.open) continue;
    for (const RunningBatch& batch : lane.running()) {
      if (batch.batch < smallest && !IsStopping(batch.id)) smallest = batch.batch;
    }
  }
  return smallest;
}

std::optional<Shepherd::Victim> Shepherd::FindVictim(const View& view, ModelId m,
                                                     TimePoint now) const {
  std::optional<Victim> victim;
  std::optional<LaneClass> made_for;
  Candidate made;
  for (const Lane& lane : view.lanes) {
    if (!lane.open || !lane.serves.contains(m)) continue;
    if (made_for != lane.lane_class) {  // lanes of a class lie side by side
      made_for = lane.lane_class;
      made = MakeCandidate(view, m, lane.lane_class, now);
    }
    for (const RunningBatch& batch : lane.running()) {
      if (batch.model == m || !IsWorth(made.batch, batch.batch)) continue;
      if (IsStopping(batch.id)) continue;
      if (victim && std::pair(batch.batch, now - batch.started) >=
                        std::pair(victim->batch->batch, now - victim->batch->started)) {
        continue;
      }
      victim = {lane.id, &batch};
    }
  }
  return victim;
}

std::optional<Preempt> Shepherd::Stop(const View& view, TimePoint now) {
  if (options_.factor == 0) return std::nullopt;
  const int smallest = SmallestRunning(view);
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    if (view.queues[i].empty()) continue;
    // Most queues are too short to stop anything, whatever their deadlines allow: no lane is
    // looked at for them.
    if (!IsWorth(view.queues[i].Batchable(LargestBatch(view, m)), smallest)) continue;
    if (HasLaneComing(m)) continue;
    const std::optional<Victim> victim = FindVictim(view, m, now);
    if (!victim) continue;
    stopping_.push_back({victim->lane, victim->batch->id, m});
    return Preempt{.lane = victim->lane, .batch = victim->batch->id};
  }
  return std::nullopt;
}

}  // namespace tactus
