#include "policies/strait/strait.h"

#include <algorithm>

namespace tactus {

void Strait::Prepare(const View& view) {
  StraitRecords::Prepare(view);
  if (!forecasts_.empty()) return;
  for (const Lane& lane : view.lanes) {
    forecasts_.push_back({.guarded = FixedVector<Guarded>(lane.slots)});
  }
}

Decision Strait::Decide(const View& view, TimePoint now) {
  ++questions_;
  TimePoint wake = kNever;
  if (const auto drop = EarlyDrop(view, now, wake)) return *drop;
  if (const auto fed = Feed(view, now, wake)) return *fed;
  const bool full = FirstFreeLane(view.lanes) == nullptr;
  for (const ModelId m : order().Sorted(view)) {
    const TimePoint ready = ReadyAt(view, m, now);
    if (ready > now) {
      wake = std::min(wake, ready);
    } else if (full) {
      continue;
    } else if (const auto decision = Try(view, m, now)) {
      return *decision;
    }
  }
  return Wait{wake};
}

// Algorithm 1 for one queue: the largest feasible batch by bisection. Feasibility is taken to fall
// with the batch; where it does not, the answer is feasible and may not be the largest. A request
// of higher priority raises every batch that reaches it: those of one level are bisected alone, the
// larger ones first.
std::optional<Decision> Strait::Try(const View& view, ModelId m, TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  StraitCandidate candidate{
      .model = m, .exit = FinalExit(view.profile, m), .deadline = queue.front().deadline};
  std::optional<Place> best;
  int most = queue.Batchable(LargestBatch(view, m));
  while (most > 0 && !best) {
    candidate.level = order().LevelOfFirst(queue, m, most);
    int least = order().LeastBatch(queue, m, candidate.level) - 1;
    while (least < most) {
      candidate.batch = (least + most + 1) / 2;
      if (const auto place = FindPlace(view, candidate, now)) {
        best = place;
        least = candidate.batch;
      } else {
        most = candidate.batch - 1;
      }
    }
  }
  if (!best) return std::nullopt;
  candidate.batch = most;
  return Launch(candidate, best->lane);
}

// The conditions in the order of their cost: the cap, then one prediction, then one for each
// running batch, which a device that is no better than the best so far is spared.
std::optional<Strait::Place> Strait::FindPlace(const View& view, const StraitCandidate& candidate,
                                               TimePoint now) {
  std::optional<Place> best;
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(candidate.model)) continue;
    CountExamined();
    const Throughput& own =
        view.profile.Use(candidate.model, candidate.exit, candidate.batch, lane.lane_class)
            .throughput;
    if (options().capped && candidate.level > 0 && ExceedsCap(device(lane.id), own, now)) continue;
    const Duration estimate = Estimate(view, candidate, lane, now);
    if (now + estimate > candidate.deadline) continue;  // meet()
    if (best && estimate >= best->estimate) continue;
    if (options().protects && Endangers(lane, own, candidate.level, now)) continue;
    best = Place{lane.id, estimate};
  }
  return best;
}

// violate(), second condition.
bool Strait::Endangers(const Lane& lane, const Throughput& own, int level, TimePoint now) {
  const DeviceRecord& here = device(lane.id);
  for (const auto& [batch, left] : ForecastOf(lane, now).guarded) {
    if (Delays(here, *batch, left, own, level, now)) return true;
  }
  return false;
}

const Strait::Forecast& Strait::ForecastOf(const Lane& lane, TimePoint now) {
  Forecast& forecast = forecasts_[lane.id.value()];
  if (forecast.question == questions_) return forecast;
  forecast.question = questions_;
  forecast.guarded.clear();
  const DeviceRecord& here = device(lane.id);
  for (const OngoingBatch& batch : here.running()) {
    const Remaining left = Left(here, batch, now);
    if (EndOf(here, batch, left, {}, now) > batch.deadline) continue;  // it forbids nothing
    forecast.guarded.push_back({&batch, left});
  }
  return forecast;
}

}  // namespace tactus
