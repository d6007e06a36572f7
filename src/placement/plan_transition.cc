#include "placement/plan_transition.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace tactus {
namespace {

using StepKind = TransitionStep::Kind;

LaneId LaneAt(std::size_t index) { return LaneId{static_cast<LaneId::rep>(index)}; }

bool Has(const LanePlan& lane, ModelId model) {
  return std::ranges::find(lane.entries, model, &PlanEntry::model) != lane.entries.end();
}
bool HasAll(const LanePlan& lane, const LanePlan& wanted) {
  return std::ranges::all_of(wanted.entries,
                             [&](const PlanEntry& entry) { return Has(lane, entry.model); });
}

}  // namespace

PlanTransition::PlanTransition(std::vector<DeviceLimits> devices) : devices_(std::move(devices)) {
  std::size_t count = 0;
  first_.push_back(count);
  for (const DeviceLimits& device : devices_) {
    count += 2 * static_cast<std::size_t>(device.most_lanes);
    first_.push_back(count);
  }
  lanes_.resize(count);
}

DeviceId PlanTransition::DeviceOf(std::size_t index) const {
  const auto after = std::ranges::upper_bound(first_, index);
  return DeviceId{static_cast<DeviceId::rep>(after - first_.begin() - 1)};
}

std::vector<LaneSpec> PlanTransition::AllLanes() const {
  std::vector<LaneSpec> lanes;
  for (std::size_t index = 0; index < lanes_.size(); ++index) {
    lanes.push_back({.device = DeviceOf(index)});
  }
  return lanes;
}

bool PlanTransition::Keeps(std::size_t index, const LanePlan& lane) const {
  const LaneState& there = lanes_[index];
  return there.state == State::kServing && there.serves.spec.lane_class == lane.spec.lane_class;
}

// How well the lanes suit what serves on the device: 2 for each that need not be made, 1 more for
// one that has its models.
int PlanTransition::Kept(std::uint32_t device, const std::vector<const LanePlan*>& lanes) const {
  int kept = 0;
  std::vector<bool> taken(LanesOf(device));
  for (const LanePlan* lane : lanes) {
    int best = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const std::size_t index = FirstOf(device) + i;
      if (taken[i] || !Keeps(index, *lane)) continue;
      const int value = HasAll(lanes_[index].serves, *lane) ? 3 : 2;
      if (value <= best) continue;
      best = value;
      at = i;
    }
    if (best > 0) taken[at] = true;
    kept += best;
  }
  return kept;
}

// By the plan's device: which one it is to be. The pairs that keep most come first.
std::vector<std::uint32_t> PlanTransition::ChooseDevices(
    const std::vector<std::vector<const LanePlan*>>& planned) const {
  struct Pair {
    int kept;
    std::uint32_t planned;
    std::uint32_t device;
  };
  std::vector<Pair> pairs;
  for (std::uint32_t p = 0; p < planned.size(); ++p) {
    for (std::uint32_t d = 0; d < planned.size(); ++d) {
      if (devices_[d] == devices_[p]) pairs.push_back({Kept(d, planned[p]), p, d});
    }
  }
  // Where nothing is to choose, a device is itself.
  std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) {
    if (a.kept != b.kept) return a.kept > b.kept;
    return (a.planned == a.device) > (b.planned == b.device);
  });
  constexpr auto kNone = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> chosen(planned.size(), kNone);
  std::vector<bool> taken(planned.size());
  for (const Pair& pair : pairs) {
    if (chosen[pair.planned] != kNone || taken[pair.device]) continue;
    chosen[pair.planned] = pair.device;
    taken[pair.device] = true;
  }
  return chosen;
}

Expected<PlanTransition::Steps> PlanTransition::Begin(const Plan& plan) {
  if (!steady()) return Fail(ErrorCode::kUnavailable, "another plan is being taken up");
  std::vector<std::vector<const LanePlan*>> planned(devices_.size());
  for (const LanePlan& lane : plan.lanes) {
    if (lane.entries.empty()) continue;  // nobody needs it
    const std::uint32_t device = lane.spec.device.value();
    if (device >= planned.size()) {
      return InvalidArgument("the plan has a lane on device " + std::to_string(device) +
                             "; there are " + std::to_string(planned.size()));
    }
    planned[device].push_back(&lane);
    const auto most = static_cast<std::size_t>(devices_[device].most_lanes);
    if (planned[device].size() <= most) continue;
    return InvalidArgument("the plan has more than " + std::to_string(most) + " lanes on device " +
                           std::to_string(device) +
                           ", which cannot be changed while requests are served; plan larger ones");
  }
  Plan next{.epoch = plan.epoch, .lanes = std::vector<LanePlan>(lanes_.size())};
  for (std::size_t index = 0; index < lanes_.size(); ++index) {
    next.lanes[index].spec = lanes_[index].serves.spec;
    next.lanes[index].spec.device = DeviceOf(index);
  }
  Steps steps;
  const std::vector<std::uint32_t> devices = ChooseDevices(planned);
  for (std::size_t p = 0; p < planned.size(); ++p) AssignLanes(devices[p], planned[p], next, steps);
  next_ = std::make_shared<const Plan>(std::move(next));
  return preparing_ > 0 ? steps : Settle();
}

void PlanTransition::AssignLanes(std::uint32_t device, const std::vector<const LanePlan*>& lanes,
                                 Plan& next, Steps& steps) {
  const std::size_t first = FirstOf(device);
  const std::size_t count = LanesOf(device);
  std::vector<bool> taken(count);
  for (const LanePlan* lane : lanes) {
    // As Kept counts: a lane with the share and the models, then one with the share.
    std::size_t at = count;
    for (std::size_t i = 0; i < count; ++i) {
      if (taken[i] || !Keeps(first + i, *lane)) continue;
      const bool all = HasAll(lanes_[first + i].serves, *lane);
      if (at == count || (all && !HasAll(lanes_[first + at].serves, *lane))) at = i;
    }
    const bool kept = at < count;
    for (std::size_t i = 0; i < count && at == count; ++i) {
      if (!taken[i] && lanes_[first + i].state == State::kFree) at = i;
    }
    CHECK(at < count, "a steady device has at most its most lanes, so as many are free");
    taken[at] = true;
    LaneState& state = lanes_[first + at];
    LanePlan& mine = next.lanes[first + at];
    mine = *lane;
    mine.spec.device = DeviceId{device};
    if (kept && HasAll(state.serves, *lane)) continue;
    if (!kept) state.state = State::kMaking;
    state.preparing = true;
    ++preparing_;
    steps.push_back({kept ? StepKind::kLoad : StepKind::kMake, LaneAt(first + at),
                     kept ? LaneSpec{} : mine.spec});
  }
}

PlanTransition::Steps PlanTransition::Prepared(LaneId lane) {
  LaneState& state = lanes_[lane.value()];
  CHECK(state.preparing, "a lane is prepared once");
  state.preparing = false;
  --preparing_;
  return Settle();
}

PlanTransition::Steps PlanTransition::Failed(LaneId lane) {
  failed_ = true;
  return Prepared(lane);
}

PlanTransition::Steps PlanTransition::Settle() {
  if (preparing_ > 0) return {};
  return std::exchange(failed_, false) ? Abandon() : Switch();
}

PlanTransition::Steps PlanTransition::Switch() {
  Steps steps = {{.kind = StepKind::kAdopt}};
  Steps unloads;  // last: they may wait for a batch
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LaneState& state = lanes_[i];
    const LanePlan& next = next_->lanes[i];
    const bool used = !next.entries.empty();
    if (state.state == State::kMaking) {
      state.state = State::kServing;
      steps.push_back({.kind = StepKind::kOpen, .lane = LaneAt(i)});
    } else if (state.state == State::kServing && !used) {
      state.state = State::kDraining;
      ++draining_;
      steps.push_back({.kind = StepKind::kClose, .lane = LaneAt(i)});
    } else if (state.state == State::kServing && !HasAll(next, state.serves)) {
      unloads.push_back({.kind = StepKind::kUnload, .lane = LaneAt(i)});
    }
    if (used) state.serves = next;
  }
  serving_ = next_;
  steps.insert(steps.end(), unloads.begin(), unloads.end());
  return steps;
}

PlanTransition::Steps PlanTransition::Abandon() {
  Steps steps;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LaneState& state = lanes_[i];
    if (state.state == State::kMaking) {
      state.state = State::kFree;
      steps.push_back({.kind = StepKind::kRemove, .lane = LaneAt(i)});
    } else if (state.state == State::kServing && !HasAll(state.serves, next_->lanes[i])) {
      steps.push_back({.kind = StepKind::kUnload, .lane = LaneAt(i)});
    }
  }
  next_ = serving_;
  return steps;
}

PlanTransition::Steps PlanTransition::Drained(LaneId lane) {
  LaneState& state = lanes_[lane.value()];
  CHECK(state.state == State::kDraining, "only a lane that was closed drains");
  state.state = State::kFree;
  --draining_;
  return {{.kind = StepKind::kRemove, .lane = lane}};
}

}  // namespace tactus
