// Arithmetic that policies share: pure functions of a profile and a deadline.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "core/view.h"

namespace tactus {

// The deepest exit e with now + L(m, e, batch) <= deadline (EdgeServing Eq. 6), less a reserve
// where there is one, or the shallowest exit when none fits.
inline ExitId DeepestFeasibleExit(const ProfileTable& profile, ModelId m, int batch, LaneClass c,
                                  TimePoint deadline, TimePoint now) {
  deadline -= profile.reserve(m);
  for (int e = profile.exits(m) - 1; e > 0; --e) {
    const ExitId exit{static_cast<ExitId::rep>(e)};
    if (now + profile.Latency(m, exit, batch, c) <= deadline) return exit;
  }
  return ExitId{0};
}

inline ExitId FinalExit(const ProfileTable& profile, ModelId m) {
  return ExitId{static_cast<ExitId::rep>(profile.exits(m) - 1)};
}

// What a batch of m takes on the best of the lanes at an exit, by the profile; Duration::max()
// where none of them serves m. Where there is a plan, on the best of all lanes: the next plan may
// have m there.
inline Duration QuickestService(const View& view, ModelId m, int batch, ExitId exit) {
  Duration quickest = Duration::max();
  for (const Lane& lane : view.lanes) {
    if (view.plan == nullptr && !lane.serves.contains(m)) continue;
    quickest = std::min(quickest, view.profile.Latency(m, exit, batch, lane.lane_class));
  }
  return quickest;
}
// At the final exit.
inline Duration QuickestService(const View& view, ModelId m, int batch = 1) {
  return QuickestService(view, m, batch, FinalExit(view.profile, m));
}

inline Duration Stretched(Duration latency, double margin) {
  return margin == 1 ? latency : FromSeconds(ToSeconds(latency) * margin);
}

// The free lane with the smallest id, so that high ids stay idle and can be given back.
inline const Lane* FirstFreeLane(std::span<const Lane> lanes) {
  for (const Lane& lane : lanes) {
    if (lane.HasFreeSlot()) return &lane;
  }
  return nullptr;
}
inline const Lane* FirstFreeLane(std::span<const Lane> lanes, ModelId m) {
  for (const Lane& lane : lanes) {
    if (lane.HasFreeSlot() && lane.serves.contains(m)) return &lane;
  }
  return nullptr;
}

// How many requests one batch of m may hold, whatever waits: what the model and the profile allow.
inline int LargestBatch(const View& view, ModelId m) {
  return std::min(view.models[m.value()].max_batch, view.profile.max_batch(m));
}

// How pressing a request is at `now`: 1 at its deadline, e times as much one SLO later, at most
// `clip` (EdgeServing Eq. 3: with deadline = arrival + SLO this is exp(waited / SLO - 1)).
inline double Urgency(TimePoint deadline, Duration slo, TimePoint now, double clip) {
  const double overdue = static_cast<double>((now - deadline).count());
  return std::min(std::exp(overdue / static_cast<double>(slo.count())), clip);
}

}  // namespace tactus
