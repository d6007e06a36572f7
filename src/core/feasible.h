// Arithmetic that policies share: pure functions of a profile and a deadline.
#pragma once

#include <optional>

#include "core/view.h"

namespace tactus {

// The deepest exit e with now + L(m, e, batch) <= deadline (EdgeServing Eq. 6), or the shallowest
// exit when none fits.
inline ExitId DeepestFeasibleExit(const ProfileTable& profile, ModelId m, int batch, LaneClass c,
                                  TimePoint deadline, TimePoint now) {
  for (int e = profile.exits(m) - 1; e > 0; --e) {
    const ExitId exit{static_cast<ExitId::rep>(e)};
    if (now + profile.Latency(m, exit, batch, c) <= deadline) return exit;
  }
  return ExitId{0};
}

inline ExitId FinalExit(const ProfileTable& profile, ModelId m) {
  return ExitId{static_cast<ExitId::rep>(profile.exits(m) - 1)};
}

// The free lane with the smallest id, so that high ids stay idle and can be given back.
inline const Lane* FirstFreeLane(std::span<const Lane> lanes) {
  for (const Lane& lane : lanes) {
    if (lane.HasFreeSlot()) return &lane;
  }
  return nullptr;
}

}  // namespace tactus
