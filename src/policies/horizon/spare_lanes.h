// Lanes that nobody will miss soon. A batch that gains next to nothing by waiting longer may have
// one before its time: bursts find less work waiting then, and a request on an idle system need not
// wait for its deadline. Of the free lanes some are kept for those whose time comes, and lanes that
// the load does not need stay idle, so that they can be given back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id_set.h"
#include "core/lane.h"
#include "policies/horizon/lane_kinds.h"

namespace tactus {

class SpareLanes {
 public:
  // Every lane counts as busy until SetFree says otherwise. May allocate, which nothing else does.
  void Prepare(const LaneKinds& kinds) {
    kind_of_ = kinds.kind_of_lane();
    place_of_.assign(kind_of_.size(), 0);
    kinds_.assign(kinds.size(), {});
    for (std::uint32_t k = 0; k < kinds.size(); ++k) {
      kinds_[k].lanes = static_cast<double>(kinds[k].lanes.size());
      kinds_[k].free.Resize(kind_of_.size());
      double place = 0;
      for (const LaneId lane : kinds[k].lanes) place_of_[lane.value()] = place++;
    }
  }

  void SetFree(LaneId lane, bool free) {
    Kind& kind = kinds_[kind_of_[lane.value()]];
    if (kind.free.contains(lane.value()) == free) return;
    free ? kind.free.Insert(lane.value()) : kind.free.Erase(lane.value());
    kind.count += free ? 1 : -1;
  }

  // One of this kind, of which the load needs `needed`.
  std::optional<LaneId> Find(std::uint32_t k, double needed) const {
    const Kind& kind = kinds_[k];
    if (kind.count <= std::max(kKept, kKeptPart * kind.lanes)) return std::nullopt;
    const LaneId first{kind.free.Least()};
    const double lent = needed < kLightLoad * kind.lanes ? kOfNeeded * needed : needed;
    if (place_of_[first.value()] + 1 > std::max(1.0, lent)) return std::nullopt;
    return first;
  }

 private:
  // Lanes that stay free: at least so many, and this part of all.
  static constexpr double kKept = 1;
  static constexpr double kKeptPart = 0.1;
  // Under a load that needs less than this part of the lanes, only so much of what it needs is
  // lent: whoever starts early takes more lanes, and those whose time comes should find one of the
  // rest, and touch no further one. Under a higher load all that are needed are lent.
  static constexpr double kLightLoad = 0.5;
  static constexpr double kOfNeeded = 0.7;

  struct Kind {
    IdSet free;
    double count = 0;
    double lanes = 0;
  };
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> kind_of_;  // by LaneId
  std::vector<double> place_of_;        // by LaneId: among those of its kind
};

}  // namespace tactus
