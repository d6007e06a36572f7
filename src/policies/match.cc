#include "policies/match.h"

#include <algorithm>
#include <utility>

namespace tactus {

void Match::Resize(std::size_t models, std::vector<std::uint32_t> group_of_lane,
                   std::size_t groups) {
  group_of_lane_ = std::move(group_of_lane);
  groups_.resize(groups);
  for (Group& group : groups_) {
    group.pending.Resize(models);
    group.ready.Resize(models);
    group.latest.assign(models, TimePoint{});
    group.free.Resize(group_of_lane_.size());
  }
}

void Match::Put(ModelId m, std::uint32_t group, const SymphonyCandidate& candidate) {
  Group& g = groups_[group];
  if (candidate.exec <= asked_) {
    g.pending.Erase(m.value());
    return g.ready.Put(m.value(), candidate.latest);
  }
  g.ready.Erase(m.value());
  g.latest[m.value()] = candidate.latest;
  g.pending.Put(m.value(), candidate.exec);
}

void Match::Erase(ModelId m, std::uint32_t group) {
  groups_[group].ready.Erase(m.value());
  groups_[group].pending.Erase(m.value());
}

void Match::SetFree(LaneId lane, bool free) {
  IdSet& lanes = groups_[group_of_lane_[lane.value()]].free;
  free ? lanes.Insert(lane.value()) : lanes.Erase(lane.value());
}

Match::Outcome Match::Next(TimePoint now) {
  asked_ = now;
  Outcome best;
  TimePoint best_latest = kNever;
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    if (group.free.empty()) continue;
    while (!group.pending.empty() && group.pending.top_key() <= now) {
      const std::uint32_t m = group.pending.top();
      group.pending.Erase(m);
      group.ready.Put(m, group.latest[m]);
    }
    if (!group.pending.empty()) best.until = std::min(best.until, group.pending.top_key());
    if (group.ready.empty()) continue;
    const ModelId m{group.ready.top()};
    const TimePoint latest = group.ready.top_key();
    if (latest < now) return {.kind = Outcome::Kind::kStale, .model = m, .group = i};
    if (latest > best_latest || (latest == best_latest && m >= best.model)) continue;
    best_latest = latest;
    best.kind = Outcome::Kind::kGrant;
    best.model = m;
    best.group = i;
    best.lane = LaneId{group.free.Least()};
  }
  return best;
}

}  // namespace tactus
