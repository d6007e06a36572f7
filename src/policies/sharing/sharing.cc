#include "policies/sharing/sharing.h"

#include <algorithm>
#include <utility>

#include "core/batch.h"

namespace tactus {
namespace {

constexpr int kConcurrent = 3;               // static; and of one level, reactive
constexpr Duration kReaction = Millis(200);  // reactive

}  // namespace

Sharing::Sharing(std::string name, const SharingOptions& options)
    : Policy({.name = std::move(name),
              .least = LeastService{},
              .suspends = options.rule == SharingRule::kPreemptive}),
      options_(options),
      order_(options.formation),
      low_(kConcurrent),
      reset_at_(kStart + kReaction) {}

void Sharing::Prepare(const View& view) {
  order_.Prepare(view);
  lost_.Prepare(view);
  departures_.Prepare(view);
}

Decision Sharing::Decide(const View& view, TimePoint now) {
  Reset(now);
  if (departures_.NextQuestion()) Miss();
  if (const auto drop = lost_.Find(view, now)) {
    const RequestQueue& queue = view.queues[drop->model.value()];
    const bool highest = order_.LevelOfFirst(queue, drop->model, drop->count) == 0;
    if (highest) Miss();
    return departures_.Answer(*drop);
  }
  TimePoint wake = lost_.next();
  for (const ModelId m : order_.Sorted(view)) {
    const TimePoint ready = order_.ReadyAt(view, m);
    if (ready > now) {
      wake = std::min(wake, ready);
      continue;
    }
    if (const auto launch = Launch(view, m, now)) return departures_.Answer(*launch);
    // A low queue may be let in again then.
    if (options_.rule == SharingRule::kReactive && low_ < kConcurrent) {
      wake = std::min(wake, reset_at_);
    }
  }
  return Wait{wake};
}

void Sharing::Reset(TimePoint now) {
  if (now < reset_at_) return;
  low_ = kConcurrent;
  reset_at_ += ((now - reset_at_) / kReaction + 1) * kReaction;
}

bool Sharing::Admits(const Lane& lane, int level) const {
  const int running = static_cast<int>(lane.batches.size());
  if (options_.rule == SharingRule::kTemporal) return running == 0;
  if (options_.rule == SharingRule::kStatic) return running < kConcurrent;
  const int low = static_cast<int>(
      std::count_if(lane.running().begin(), lane.running().end(),
                    [&](const RunningBatch& batch) { return order_.LevelOf(batch.priority) > 0; }));
  if (options_.rule == SharingRule::kPreemptive) {
    return level == 0 || lane.slots == 1 || low < lane.slots - 1;
  }
  return level == 0 ? running - low < kConcurrent : low < low_;
}

// A lane is asked for the batch that it would get, whose level need not be that of the queue.
std::optional<Dispatch> Sharing::Launch(const View& view, ModelId m, TimePoint now) const {
  const Lane* best = nullptr;
  int best_batch = 0;
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(m)) continue;
    if (best != nullptr && lane.batches.size() >= best->batches.size()) continue;
    const int batch = BatchFor(view, m, lane, now);
    if (!Admits(lane, order_.LevelOfFirst(view.queues[m.value()], m, batch))) continue;
    best = &lane;
    best_batch = batch;
  }
  if (best == nullptr) return std::nullopt;
  return Dispatch{m, FinalExit(view.profile, m), best_batch, best->id};
}

// The largest that its first request can wait for, were it alone on the device.
int Sharing::BatchFor(const View& view, ModelId m, const Lane& lane, TimePoint now) const {
  const RequestQueue& queue = view.queues[m.value()];
  int batch = queue.Batchable(std::min(options_.largest_batch, LargestBatch(view, m)));
  const ExitId exit = FinalExit(view.profile, m);
  const Duration left = queue.front().deadline - now;
  while (batch > 1 && view.profile.Latency(m, exit, batch, lane.lane_class) > left) --batch;
  return batch;
}

void Sharing::OnPopFront(ModelId m, int count) { departures_.Leave(m, count, order_); }

// What failed or was stopped says nothing of how busy the device is.
void Sharing::OnBatchDone(LaneId, const RunningBatch& batch, const BatchReport& report,
                          TimePoint now) {
  if (report.status != BatchStatus::kOk) return;
  if (order_.LevelOf(batch.priority) == 0 && now > batch.deadline) Miss();
}

}  // namespace tactus
