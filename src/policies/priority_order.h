// What the policies with priorities share: which queue is looked at first, and when its first
// request has waited long enough for others to join its batch.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/feasible.h"
#include "core/priority_levels.h"
#include "core/view.h"

namespace tactus {

class PriorityOrder {
 public:
  // `formation`: how long a first request waits for others, as a share of its model's SLO
  // (Strait, Section 5.1: proportional to the deadline; the share is not printed there).
  // `by_level` false: the levels are known, and queues go by deadline alone.
  explicit PriorityOrder(double formation, bool by_level = true)
      : formation_(formation), by_level_(by_level) {}

  void Prepare(const View& view) {
    all_.Prepare(view.models);
    own_.assign(view.models.size(), 0);
    levels_.assign(view.models.size(), 0);
    alone_.assign(view.models.size(), Duration{});
    order_.reserve(view.models.size());
    seen_.Prepare(view.profile);
    for (std::size_t m = 0; m < view.models.size(); ++m) {
      if (!view.models[m].loaded) continue;
      own_[m] = view.models[m].priority;
      levels_[m] = LevelOf(own_[m]);
      SetAlone(view, ModelId{static_cast<ModelId::rep>(m)});
    }
  }

  const PriorityLevels& levels() const { return all_; }
  int LevelOf(int priority) const { return all_.LevelOf(priority); }
  // The highest of the model's first `count` requests: a batch has that of the requests it holds,
  // not of those that wait behind them.
  int LevelOfFirst(const RequestQueue& queue, ModelId m, int count) const {
    const int model = own_[m.value()];
    const int priority = queue.Priority(count, model);
    return priority == model ? levels_[m.value()] : LevelOf(priority);
  }
  // The smallest batch of the queue that has this level; some batch does.
  int LeastBatch(const RequestQueue& queue, ModelId m, int level) const {
    int batch = 1;
    while (LevelOfFirst(queue, m, batch) > level) ++batch;
    return batch;
  }
  // The highest level among the requests that the model's next batch may take.
  int Waiting(const View& view, ModelId m) const {
    return LevelOfFirst(view.queues[m.value()], m, view.models[m.value()].max_batch);
  }

  // Models with waiting requests: by level, in a level the one that is due first. Good until the
  // next call.
  std::span<const ModelId> Sorted(const View& view) {
    seen_.Take(view.profile, [&](ModelId m) { SetAlone(view, m); });
    order_.clear();
    for (std::size_t m = 0; m < view.queues.size(); ++m) {
      if (!view.queues[m].empty()) order_.push_back(ModelId{static_cast<ModelId::rep>(m)});
    }
    std::sort(order_.begin(), order_.end(), [&](ModelId a, ModelId b) {
      if (by_level_) {
        const int level_a = Waiting(view, a), level_b = Waiting(view, b);
        if (level_a != level_b) return level_a < level_b;
      }
      const TimePoint due_a = view.queues[a.value()].front().deadline;
      const TimePoint due_b = view.queues[b.value()].front().deadline;
      return due_a != due_b ? due_a < due_b : a < b;
    });
    return order_;
  }

  // When a batch of the model may go, full or not: never so late that its first request is lost.
  TimePoint ReadyAt(const View& view, ModelId m) const {
    const RequestQueue& queue = view.queues[m.value()];
    const int largest = LargestBatch(view, m);
    if (queue.Batchable(largest) == largest) return TimePoint{};
    const Request& first = queue.front();
    const Duration wait = FromSeconds(formation_ * ToSeconds(view.models[m.value()].slo));
    return std::min(first.arrival + wait, first.deadline - alone_[m.value()]);
  }

 private:
  void SetAlone(const View& view, ModelId m) {
    alone_[m.value()] = Duration{};
    if (!view.models[m.value()].loaded) return;
    for (const Lane& lane : view.lanes) {
      if (!lane.serves.contains(m)) continue;
      alone_[m.value()] =
          std::max(alone_[m.value()],
                   view.profile.Latency(m, FinalExit(view.profile, m), 1, lane.lane_class));
    }
  }

  const double formation_;
  const bool by_level_;
  PriorityLevels all_;
  RevisionsSeen seen_;
  std::vector<int> own_;         // by ModelId: the model's priority
  std::vector<int> levels_;      // by ModelId: of that priority
  std::vector<Duration> alone_;  // by ModelId: on the slowest lane that serves it
  std::vector<ModelId> order_;
};

}  // namespace tactus
