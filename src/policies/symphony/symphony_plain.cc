#include "policies/symphony/symphony_plain.h"

#include <algorithm>

#include "core/feasible.h"

namespace tactus {

void PlainSymphony::Prepare(const View& view) { rates_.resize(view.models.size()); }

void PlainSymphony::OnArrive(ModelId m, const Request& request) {
  RateWindow& window = rates_[m.value()];
  const Duration elapsed = request.arrival - window.begin;
  if (elapsed >= options_.rate_window) {
    window.rate = static_cast<double>(window.count) / ToSeconds(elapsed);
    window.begin = request.arrival;
    window.count = 0;
  }
  ++window.count;
}

Decision PlainSymphony::Decide(const View& view, TimePoint now) {
  std::optional<Dispatch> best;
  TimePoint best_latest = kNever;
  TimePoint wake = kNever;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    const RequestQueue& queue = view.queues[i];
    if (queue.empty()) continue;
    const Lane* free = FirstFreeLane(view.lanes, m);
    const LaneClass lane_class = (free != nullptr ? *free : view.lanes[0]).lane_class;
    const auto candidate = MakeCandidate(view, m, lane_class, options_.candidate, now);
    if (!candidate) return Drop{.model = m, .count = 1, .reason = DropReason::kExpired};
    // Once the latest moment has passed, the batch shrinks or its head is lost: look again then.
    wake = std::min(
        {wake, candidate->latest + Nanos(1), candidate->exec > now ? candidate->exec : kNever});
    if (free == nullptr || candidate->exec > now || candidate->latest >= best_latest) continue;
    if (options_.gather == Gather::kWindow) {
      const int target = StaggeredBatch(view, m, lane_class, rates_[i].rate);
      const int lost = HeadsToDrop(view, m, lane_class, target, now);
      if (lost > 0) return Drop{.model = m, .count = lost, .reason = DropReason::kShed};
    }
    best_latest = candidate->latest;
    best = Dispatch{.model = m,
                    .exit = FinalExit(view.profile, m),
                    .batch = candidate->batch,
                    .lane = free->id};
  }
  if (best) return *best;
  return Wait{wake};
}

}  // namespace tactus
