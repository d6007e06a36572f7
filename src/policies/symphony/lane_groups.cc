#include "policies/symphony/lane_groups.h"

#include <algorithm>

#include "core/feasible.h"

namespace tactus {

void LaneGroups::Prepare(const View& view, NetworkDelays delays) {
  groups_.clear();
  group_of_.clear();
  for (const Lane& lane : view.lanes) {
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return g.lane_class == lane.lane_class && g.serves == lane.serves;
    });
    if (group == groups_.end()) {
      group = groups_.insert(groups_.end(), {.lane_class = lane.lane_class, .serves = lane.serves});
      group->costs.resize(view.models.size());
    }
    group->lanes += lane.slots;
    group_of_.push_back(static_cast<std::uint32_t>(group - groups_.begin()));
  }
  servers_.assign(view.models.size(), {});
  quickest_.assign(view.models.size(), 0);
  delays_ = delays;
  for (ModelId::rep m = 0; m < view.models.size(); ++m) Price(view, ModelId{m});
  for (ModelId::rep i = 0; i < view.models.size(); ++i) {
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      if (Serves(g, ModelId{i})) servers_[i].push_back(g);
    }
  }
}

void LaneGroups::Price(const View& view, ModelId m) {
  if (!view.models[m.value()].loaded) return;
  const ExitId exit = FinalExit(view.profile, m);
  for (Group& group : groups_) {
    if (!group.serves.contains(m)) continue;
    group.costs[m.value()].Set(LargestBatch(view, m), delays_, [&](int b) {
      return view.profile.Latency(m, exit, b, group.lane_class);
    });
  }
  std::uint32_t& best = quickest_[m.value()];
  best = 0;
  for (std::uint32_t g = 1; g < groups_.size(); ++g) {
    if (!Serves(g, m)) continue;
    if (!Serves(best, m) || Costs(g, m)(1) < Costs(best, m)(1)) best = g;
  }
}

}  // namespace tactus
