#include "policies/symphony/lane_groups.h"

#include <algorithm>

#include "core/feasible.h"

namespace tactus {
namespace {

BatchCosts CostsOf(const View& view, ModelId m, LaneClass c, NetworkDelays delays) {
  if (!view.models[m.value()].loaded) return {};
  std::vector<Duration> latency;
  for (int b = 1; b <= LargestBatch(view, m); ++b) {
    latency.push_back(view.profile.Latency(m, FinalExit(view.profile, m), b, c));
  }
  return BatchCosts(latency, delays);
}

}  // namespace

void LaneGroups::Prepare(const View& view, NetworkDelays delays) {
  groups_.clear();
  group_of_.clear();
  for (const Lane& lane : view.lanes) {
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return g.lane_class == lane.lane_class && g.serves == lane.serves;
    });
    if (group == groups_.end()) {
      group = groups_.insert(groups_.end(), {.lane_class = lane.lane_class, .serves = lane.serves});
      for (std::size_t i = 0; i < view.models.size(); ++i) {
        const ModelId m{static_cast<ModelId::rep>(i)};
        const bool here = lane.serves.contains(m);
        group->costs.push_back(here ? CostsOf(view, m, lane.lane_class, delays) : BatchCosts{});
      }
    }
    group->lanes += lane.slots;
    group_of_.push_back(static_cast<std::uint32_t>(group - groups_.begin()));
  }
  servers_.assign(view.models.size(), {});
  quickest_.assign(view.models.size(), 0);
  for (ModelId::rep i = 0; i < view.models.size(); ++i) {
    const ModelId m{i};
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      if (!Serves(g, m)) continue;
      const bool first = servers_[i].empty();
      if (first || Costs(g, m)(1) < Costs(quickest_[i], m)(1)) quickest_[i] = g;
      servers_[i].push_back(g);
    }
  }
}

}  // namespace tactus
