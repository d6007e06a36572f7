#include "policies/baselines/ranked.h"

#include <algorithm>

#include "core/feasible.h"

namespace tactus {

bool LongestQueueFirst(const RequestQueue& a, const RequestQueue& b) { return a.size() > b.size(); }
bool EarliestDeadlineFirst(const RequestQueue& a, const RequestQueue& b) {
  return a.front().deadline < b.front().deadline;
}
bool EarliestArrivalFirst(const RequestQueue& a, const RequestQueue& b) {
  return a.front().arrival < b.front().arrival;
}

Decision RankedPolicy::Decide(const View& view, TimePoint now) {
  ModelId best;
  const Lane* lane = nullptr;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    if (view.queues[i].empty()) continue;
    if (lane != nullptr && !rank_(view.queues[i], view.queues[best.value()])) continue;
    const ModelId m{static_cast<ModelId::rep>(i)};
    const Lane* free = FirstFreeLane(view.lanes, m);
    if (free == nullptr) continue;
    best = m;
    lane = free;
  }
  if (lane == nullptr) return Wait{};
  const int limit = std::min(LargestBatch(view, best), batch_);
  const int batch = view.queues[best.value()].Batchable(limit);
  return Dispatch{
      .model = best, .exit = Exit(view, best, batch, *lane, now), .batch = batch, .lane = lane->id};
}

ExitId RankedPolicy::Exit(const View& view, ModelId m, int batch, const Lane& lane,
                          TimePoint now) const {
  switch (exit_rule_) {
    case ExitRule::kShallowest:
      return ExitId{0};
    case ExitRule::kFinal:
      return FinalExit(view.profile, m);
    case ExitRule::kDeepestFeasible:
      return DeepestFeasibleExit(view.profile, m, batch, lane.lane_class,
                                 view.queues[m.value()].front().deadline, now);
  }
  return FinalExit(view.profile, m);
}

}  // namespace tactus
