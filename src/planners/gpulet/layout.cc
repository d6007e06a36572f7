#include "planners/gpulet/layout.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus {

Layout::Layout(const PlanInput& input, const InterferenceModel* interference)
    : input_(input), interference_(interference) {
  for (int device = 0; device < input.devices; ++device) {
    gpulets_.push_back({.device = device, .lane_class = input.whole()});
  }
  if (interference == nullptr) return;
  for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
    auto& of_class = uses_.emplace_back();
    for (ModelId::rep m = 0; m < input.models.size(); ++m) {
      of_class.push_back(WorstUse(input, LaneClass{c}, ModelId{m}));
    }
  }
}

std::vector<int> Layout::Free() const {
  std::vector<int> free;
  for (int i = 0; i < static_cast<int>(gpulets_.size()); ++i) {
    if (gpulets_[i].members.empty()) free.push_back(i);
  }
  std::ranges::stable_sort(free, {}, [&](int i) { return gpulets_[i].lane_class; });
  return free;
}

bool Layout::Split(int i, LaneClass part) {
  CHECK(IsWhole(i) && gpulets_[i].members.empty(), "only a whole free device is split");
  const double rest = 1 - input_.share(part);
  const auto found = std::ranges::find_if(
      input_.shares, [&](double share) { return std::abs(share - rest) < 1e-6; });
  if (found == input_.shares.end()) return false;
  gpulets_[i].lane_class = part;
  gpulets_.push_back(
      {.device = gpulets_[i].device,
       .lane_class = LaneClass{static_cast<LaneClass::rep>(found - input_.shares.begin())}});
  return true;
}

void Layout::RevertSplit(int i) {
  for (int j = 0; j < static_cast<int>(gpulets_.size()); ++j) {
    if (j == i || gpulets_[j].device != gpulets_[i].device) continue;
    if (!gpulets_[i].members.empty() || !gpulets_[j].members.empty()) return;
    gpulets_[std::min(i, j)].lane_class = input_.whole();
    gpulets_.erase(gpulets_.begin() + std::max(i, j));
    return;
  }
}

std::optional<DutyCycle> Layout::CycleOf(int i, std::vector<LaneMember> members,
                                         const std::vector<LaneMember>* changed,
                                         int changed_at) const {
  const GpuLet& own = gpulets_[i];
  for (LaneMember& member : members) {
    member.slowdown = 1;
    if (interference_ == nullptr) continue;
    const Throughput& use = uses_[own.lane_class.value()][member.model.value()];
    for (int j = 0; j < static_cast<int>(gpulets_.size()); ++j) {
      const GpuLet& other = gpulets_[j];
      if (j == i || other.device != own.device) continue;
      for (const LaneMember& neighbour : j == changed_at ? *changed : other.members) {
        const Throughput& theirs = uses_[other.lane_class.value()][neighbour.model.value()];
        member.slowdown = std::max(member.slowdown, interference_->Slowdown(use, theirs));
      }
    }
  }
  return FitCycle(input_, own.lane_class, members);
}

bool Layout::Fits(int i, const std::vector<LaneMember>& members) const {
  if (!CycleOf(i, members, nullptr, -1)) return false;
  if (interference_ == nullptr) return true;
  for (int j = 0; j < static_cast<int>(gpulets_.size()); ++j) {
    const GpuLet& other = gpulets_[j];
    if (j == i || other.device != gpulets_[i].device || other.members.empty()) continue;
    if (!CycleOf(j, other.members, &members, i)) return false;
  }
  return true;
}

double Layout::Most(int i, ModelId model, double rate_rps) const {
  constexpr int kHalvings = 10;
  std::vector<LaneMember> members = gpulets_[i].members;
  const auto found = std::ranges::find(members, model, &LaneMember::model);
  const bool there = found != members.end();
  const double before = there ? found->rate_rps : 0;
  const std::size_t at = found - members.begin();
  if (!there) members.push_back({.model = model});
  const auto fits = [&](double part) {
    members[at].rate_rps = before + part * rate_rps;
    return Fits(i, members);
  };
  if (fits(1)) return rate_rps;
  double low = 0;
  double high = 1;
  for (int h = 0; h < kHalvings; ++h) {
    const double middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low * rate_rps;
}

void Layout::Add(int i, ModelId model, double rate_rps) {
  auto& members = gpulets_[i].members;
  const auto found = std::ranges::find(members, model, &LaneMember::model);
  if (found != members.end()) {
    found->rate_rps += rate_rps;
  } else {
    members.push_back({.model = model, .rate_rps = rate_rps});
  }
}

Plan Layout::ToPlan(std::uint64_t epoch) const {
  Plan plan{.epoch = epoch};
  for (int i = 0; i < static_cast<int>(gpulets_.size()); ++i) {
    const GpuLet& gpulet = gpulets_[i];
    if (gpulet.members.empty()) continue;
    const auto fit = CycleOf(i, gpulet.members, nullptr, -1);
    CHECK(fit, "Add was called with what Most allows");
    LanePlan& lane = plan.lanes.emplace_back();
    lane.spec = {.device = DeviceId{static_cast<DeviceId::rep>(gpulet.device)},
                 .lane_class = gpulet.lane_class,
                 .fraction = input_.share(gpulet.lane_class)};
    lane.cycle = fit->cycle;
    Duration offset{};
    for (std::size_t k = 0; k < gpulet.members.size(); ++k) {
      const ModelId model = gpulet.members[k].model;
      const Duration length = input_.Latency(model, fit->batches[k], gpulet.lane_class);
      lane.entries.push_back(
          {.model = model, .batch = fit->batches[k], .offset = offset, .length = length});
      offset += length;
    }
  }
  return plan;
}

}  // namespace tactus
