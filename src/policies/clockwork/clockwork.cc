#include "policies/clockwork/clockwork.h"

#include <algorithm>
#include <utility>

namespace tactus {

Clockwork::Clockwork(std::string name, ClockworkOptions options)
    : Policy({.name = std::move(name),
              .least = LeastService{.sizes = options.sizes, .margin = options.margin}}),
      options_(std::move(options)) {}

void Clockwork::Prepare(const View& view) {
  lost_.Prepare(view, options_.margin);
  candidates_.assign(view.models.size(), 0);
  for (std::size_t i = 0; i < view.models.size(); ++i) {
    if (!view.models[i].loaded) continue;
    const int most = LargestBatch(view, ModelId{static_cast<ModelId::rep>(i)});
    const auto allowed = std::count_if(options_.sizes.begin(), options_.sizes.end(),
                                       [most](int size) { return size <= most; });
    const auto sizes = static_cast<std::size_t>(options_.sizes.empty() ? most : allowed);
    candidates_[i] = sizes * view.lanes.size();
  }
}

int Clockwork::Largest(const View& view, ModelId m, LaneClass c, int limit, Duration slack) const {
  const ExitId exit = FinalExit(view.profile, m);
  const auto fits = [&](int batch) {
    return Stretched(view.profile.Latency(m, exit, batch, c), options_.margin) <= slack;
  };
  if (options_.sizes.empty()) {
    int batch = limit;
    while (batch > 0 && !fits(batch)) --batch;
    return batch;
  }
  for (std::size_t i = options_.sizes.size(); i-- > 0;) {
    if (options_.sizes[i] <= limit && fits(options_.sizes[i])) return options_.sizes[i];
  }
  return 0;
}

Decision Clockwork::Decide(const View& view, TimePoint now) {
  if (const auto drop = lost_.Find(view, now)) return *drop;
  std::optional<Dispatch> best;
  TimePoint best_latest = kNever;
  if (FirstFreeLane(view.lanes) == nullptr) return Wait{lost_.next()};
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const RequestQueue& queue = view.queues[i];
    if (queue.empty()) continue;
    const ModelId m{static_cast<ModelId::rep>(i)};
    const Lane* lane = FirstFreeLane(view.lanes, m);
    if (lane == nullptr) continue;
    const TimePoint deadline = queue.front().deadline;
    const int batch =
        Largest(view, m, lane->lane_class, queue.Batchable(LargestBatch(view, m)), deadline - now);
    if (batch == 0) continue;  // too slow a lane
    const ExitId exit = FinalExit(view.profile, m);
    const Duration takes = view.profile.Latency(m, exit, batch, lane->lane_class);
    const TimePoint latest = deadline - Stretched(takes, options_.margin);
    if (latest >= best_latest) continue;
    best_latest = latest;
    best = Dispatch{.model = m, .exit = exit, .batch = batch, .lane = lane->id};
  }
  if (best) return *best;
  return Wait{lost_.next()};
}

}  // namespace tactus
