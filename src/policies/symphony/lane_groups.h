// Lanes that are alike: the same latencies and the same models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/view.h"
#include "policies/batch_costs.h"
#include "policies/candidate.h"

namespace tactus {

class LaneGroups {
 public:
  // Groups are counted in the order of their first lanes. A group's costs are those of each loaded
  // model at its final exit.
  void Prepare(const View& view, NetworkDelays delays);
  // Its latencies have changed. Allocates nothing.
  void Price(const View& view, ModelId m);

  std::size_t size() const { return groups_.size(); }
  std::uint32_t Of(LaneId lane) const { return group_of_[lane.value()]; }
  const std::vector<std::uint32_t>& group_of_lane() const { return group_of_; }
  int LanesIn(std::uint32_t group) const { return groups_[group].lanes; }
  // The groups that serve m, in their order.
  std::span<const std::uint32_t> ServersOf(ModelId m) const { return servers_[m.value()]; }
  bool Serves(std::uint32_t group, ModelId m) const {
    return groups_[group].serves.contains(m) && groups_[group].costs[m.value()].max_batch() > 0;
  }
  // Heads are given up for a larger batch only where a request alone is answered the soonest: on a
  // slower lane they may look lost that a quicker one can still serve. There the candidate waits
  // until it has to be made anew.
  SymphonyCandidate Admit(std::uint32_t group, ModelId m, SymphonyCandidate candidate) const {
    if (candidate.drop > 0 && group != quickest_[m.value()]) {
      candidate.exec = candidate.latest + Nanos(1);
    }
    return candidate;
  }
  const BatchCosts& Costs(std::uint32_t group, ModelId m) const {
    return groups_[group].costs[m.value()];
  }

 private:
  struct Group {
    LaneClass lane_class;
    ModelSet serves;
    int lanes = 0;
    std::vector<BatchCosts> costs;  // by ModelId; none for a model that is not loaded
  };
  NetworkDelays delays_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;              // by LaneId
  std::vector<std::vector<std::uint32_t>> servers_;  // by ModelId
  std::vector<std::uint32_t> quickest_;              // by ModelId; the first of several
};

}  // namespace tactus
