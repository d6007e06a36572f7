#include "policies/strait/strait_plain_for_test.h"

#include <algorithm>

namespace tactus {

Decision PlainStrait::Decide(const View& view, TimePoint now) {
  TimePoint wake = kNever;
  if (const auto drop = EarlyDrop(view, now, wake)) return *drop;
  if (const auto fed = Feed(view, now, wake)) return *fed;
  for (const ModelId m : order().Sorted(view)) {
    const TimePoint ready = ReadyAt(view, m, now);
    if (ready > now) {
      wake = std::min(wake, ready);
    } else if (const auto dispatch = LargestFeasible(view, m, now)) {
      return *dispatch;
    }
  }
  return Wait{wake};
}

// Feasibility is taken to fall with the batch; where it does not, the answer is feasible and may
// not be the largest. Batches of one level are bisected alone: a request of higher priority raises
// every batch that reaches it.
std::optional<Dispatch> PlainStrait::LargestFeasible(const View& view, ModelId m, TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  StraitCandidate candidate{
      .model = m, .exit = FinalExit(view.profile, m), .deadline = queue.front().deadline};
  std::optional<LaneId> device;
  int most = queue.Batchable(LargestBatch(view, m));
  while (most > 0 && !device) {
    candidate.level = order().LevelOfFirst(queue, m, most);
    int feasible = order().LeastBatch(queue, m, candidate.level) - 1;
    while (feasible < most) {
      candidate.batch = (feasible + most + 1) / 2;
      if (const auto best = BestDevice(view, candidate, now)) {
        device = best;
        feasible = candidate.batch;
      } else {
        most = candidate.batch - 1;
      }
    }
  }
  if (!device) return std::nullopt;
  candidate.batch = most;
  return Launch(candidate, *device);
}

// Of the devices that can take it, the one with the least estimate; the first of equals.
std::optional<LaneId> PlainStrait::BestDevice(const View& view, const StraitCandidate& candidate,
                                              TimePoint now) {
  std::optional<LaneId> best;
  Duration least = Duration::max();
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(candidate.model)) continue;
    CountExamined();
    if (Violate(view, candidate, lane, now) || !Meet(view, candidate, lane, now)) continue;
    const Duration estimate = Estimate(view, candidate, lane, now);
    if (estimate >= least) continue;
    least = estimate;
    best = lane.id;
  }
  return best;
}

bool PlainStrait::Violate(const View& view, const StraitCandidate& candidate, const Lane& lane,
                          TimePoint now) const {
  const DeviceRecord& here = device(lane.id);
  const Throughput& own =
      view.profile.Use(candidate.model, candidate.exit, candidate.batch, lane.lane_class)
          .throughput;
  if (options().capped && candidate.level > 0 && ExceedsCap(here, own, now)) return true;
  if (!options().protects) return false;
  for (const OngoingBatch& batch : here.running()) {
    const Remaining left = Left(here, batch, now);
    const bool misses_anyway = EndOf(here, batch, left, {}, now) > batch.deadline;
    if (Delays(here, batch, left, own, candidate.level, now) && !misses_anyway) return true;
  }
  return false;
}

bool PlainStrait::Meet(const View& view, const StraitCandidate& candidate, const Lane& lane,
                       TimePoint now) const {
  return now + Estimate(view, candidate, lane, now) <= candidate.deadline;
}

}  // namespace tactus
