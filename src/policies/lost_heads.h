// What every rival that knows deadlines does first: give up the heads that no lane could answer in
// time any more, not even alone in a batch at the final exit.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/decision.h"
#include "core/feasible.h"

namespace tactus {

class LostHeads {
 public:
  // `margin` stretches the profiled latencies.
  void Prepare(const View& view, double margin = 1) {
    margin_ = margin;
    seen_.Prepare(view.profile);
    quickest_.assign(view.models.size(), Duration{});
    for (ModelId::rep i = 0; i < quickest_.size(); ++i) SetQuickest(view, ModelId{i});
  }

  // The next to give up at `now`, if any; else `next()` says when to look again.
  std::optional<Drop> Find(const View& view, TimePoint now) {
    seen_.Take(view.profile, [&](ModelId m) { SetQuickest(view, m); });
    next_ = kNever;
    for (std::size_t i = 0; i < view.queues.size(); ++i) {
      if (view.queues[i].empty()) continue;
      const TimePoint until = LastStart(view.queues[i].front().deadline, i);
      if (until < now) {
        return Drop{.model = ModelId{static_cast<ModelId::rep>(i)},
                    .count = 1,
                    .reason = DropReason::kExpired};
      }
      next_ = std::min(next_, until + Nanos(1));
    }
    return std::nullopt;
  }
  TimePoint next() const { return next_; }

 private:
  void SetQuickest(const View& view, ModelId m) {
    if (!view.models[m.value()].loaded) return;
    const Duration quickest = QuickestService(view, m);
    quickest_[m.value()] = quickest < Duration::max() ? Stretched(quickest, margin_) : quickest;
  }

  // Where no lane serves the model, its requests are lost at once.
  TimePoint LastStart(TimePoint deadline, std::size_t m) const {
    return quickest_[m] == Duration::max() ? TimePoint{Duration::min()} : deadline - quickest_[m];
  }

  double margin_ = 1;
  RevisionsSeen seen_;
  std::vector<Duration> quickest_;  // by ModelId
  TimePoint next_ = kNever;
};

}  // namespace tactus
