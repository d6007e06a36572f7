#include "policies/timeout/timeout.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tactus {

Timeout::Timeout(std::string name, TimeoutOptions options)
    : Policy({.name = std::move(name),
              .least = options.drop_lost ? std::optional(LeastService{}) : std::nullopt}),
      options_(std::move(options)) {}

void Timeout::Prepare(const View& view) { lost_.Prepare(view); }

int Timeout::AtOnce(int waiting, int most) const {
  if (waiting >= most) return most;
  for (std::size_t i = options_.preferred.size(); i-- > 0;) {
    if (options_.preferred[i] <= waiting) return options_.preferred[i];
  }
  return 0;
}

int Timeout::MostOf(const View& view, ModelId m, LaneClass c) const {
  int most = std::min(options_.max_batch, LargestBatch(view, m));
  if (options_.fill >= 1) return most;
  const Duration longest = FromSeconds(options_.fill * ToSeconds(view.models[m.value()].slo));
  const ExitId exit = FinalExit(view.profile, m);
  while (most > 1 && view.profile.Latency(m, exit, most, c) > longest) --most;
  return most;
}

Decision Timeout::Decide(const View& view, TimePoint now) {
  TimePoint wake = kNever;
  if (options_.drop_lost) {
    if (const auto drop = lost_.Find(view, now)) return *drop;
    wake = lost_.next();
  }
  std::optional<Dispatch> best;
  TimePoint best_oldest = kNever;
  if (FirstFreeLane(view.lanes) == nullptr) return Wait{wake};
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const RequestQueue& queue = view.queues[i];
    if (queue.empty()) continue;
    const ModelId m{static_cast<ModelId::rep>(i)};
    const Lane* lane = FirstFreeLane(view.lanes, m);
    if (lane == nullptr) continue;
    const int most = MostOf(view, m, lane->lane_class);
    const int waiting = queue.Batchable(most);
    TimePoint oldest = queue.front().arrival;
    for (int r = 1; r < waiting; ++r) oldest = std::min(oldest, queue[r].arrival);
    const Duration delay = options_.delay_share > 0
                               ? FromSeconds(options_.delay_share * ToSeconds(view.models[i].slo))
                               : options_.delay;
    int batch = AtOnce(waiting, most);
    if (batch == 0) {
      if (oldest + delay > now) {
        wake = std::min(wake, oldest + delay);
        continue;
      }
      batch = waiting;
    }
    if (oldest >= best_oldest) continue;
    best_oldest = oldest;
    best =
        Dispatch{.model = m, .exit = FinalExit(view.profile, m), .batch = batch, .lane = lane->id};
  }
  if (best) return *best;
  return Wait{wake};
}

}  // namespace tactus
