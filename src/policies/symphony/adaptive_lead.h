// How long before frontrun a model's candidate becomes schedulable, derived from the load. Ours:
// frontrun leaves only cost(b + 1) - cost(b) to find a free lane, which is too little where few
// lanes serve many models. With mean = the mean length of a batch and o = the part of the lanes'
// time that other models take,
//   lead = (1 + 4 o) mean / lanes
// so it vanishes with many lanes, as the published rule has it, and grows with crowding.
#pragma once

#include <vector>

#include "core/view.h"
#include "policies/symphony/lane_groups.h"

namespace tactus {

// By model and lane group. Changes when a model's rate or price is told, never by the mere passing
// of time, so what is derived from it stays exact between two events. A model's lead is that of the
// load at its own last Update.
class AdaptiveLead {
 public:
  // Forgets all rates.
  void Prepare(const View& view, const LaneGroups& groups);
  // `rate` in requests a second. Allocates nothing.
  void Update(ModelId m, double rate, const LaneGroups& groups);
  // A tenth of the SLO before any rate is known.
  Duration Of(ModelId m, std::uint32_t group) const { return leads_[Index(m, group)]; }

 private:
  struct Load {
    double lanes = 0;    // kept busy
    double batches = 0;  // a second
  };
  std::size_t Index(ModelId m, std::uint32_t group) const {
    return m.value() * sums_.size() + group;
  }

  std::vector<Duration> slos_;   // by ModelId
  std::vector<Load> sums_;       // by group
  std::vector<Load> loads_;      // by model, then group
  std::vector<Duration> leads_;  // likewise
};

}  // namespace tactus
