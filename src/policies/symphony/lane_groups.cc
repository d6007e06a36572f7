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
        group->costs.push_back(
            CostsOf(view, ModelId{static_cast<ModelId::rep>(i)}, lane.lane_class, delays));
      }
    }
    group->lanes += lane.slots;
    group_of_.push_back(static_cast<std::uint32_t>(group - groups_.begin()));
  }
  quickest_.assign(view.models.size(), 0);
  for (ModelId::rep i = 0; i < view.models.size(); ++i) {
    const ModelId m{i};
    for (std::uint32_t g = 1; g < groups_.size(); ++g) {
      if (!Serves(g, m)) continue;
      const std::uint32_t best = quickest_[i];
      if (!Serves(best, m) || Costs(g, m)(1) < Costs(best, m)(1)) quickest_[i] = g;
    }
  }
}

}  // namespace tactus
