#include "planners/gpulet/layout.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/shares.h"

namespace tactus {

Layout::Layout(const PlanInput& input, const InterferenceModel* interference,
               const std::vector<ModelId>& expected, bool neighbours_bear_it)
    : input_(input), interference_(interference), neighbours_bear_it_(neighbours_bear_it) {
  for (int device = 0; device < input.devices; ++device) {
    gpulets_.push_back({.device = device, .lane_class = input.whole()});
  }
  if (std::isfinite(input.device.memory_mb)) held_mb_.resize(input.devices);
  if (interference == nullptr) return;
  for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
    auto& of_class = uses_.emplace_back();
    for (ModelId::rep m = 0; m < input.models.size(); ++m) {
      of_class.push_back(WorstUse(input, LaneClass{c}, ModelId{m}));
    }
  }
  for (const ModelId m : expected) expected_.push_back({.model = m});
}

std::vector<int> Layout::Free() const {
  std::vector<int> free;
  for (int i = 0; i < static_cast<int>(gpulets_.size()); ++i) {
    if (gpulets_[i].members.empty()) free.push_back(i);
  }
  std::ranges::stable_sort(free, {}, [&](int i) { return gpulets_[i].lane_class; });
  return free;
}

std::optional<LaneClass> Layout::ComplementOf(LaneClass part) const {
  const auto rest = tactus::ComplementOf(input_.shares, input_.share(part));
  if (!rest) return std::nullopt;
  return LaneClass{static_cast<LaneClass::rep>(*rest)};
}

bool Layout::Split(int i, LaneClass part) {
  CHECK(IsWhole(i) && gpulets_[i].members.empty(), "only a whole free device is split");
  const auto rest = ComplementOf(part);
  if (!rest) return false;
  gpulets_[i].lane_class = part;
  gpulets_.push_back({.device = gpulets_[i].device, .lane_class = *rest});
  return true;
}

std::optional<int> Layout::Beside(int i) const {
  if (IsWhole(i)) return std::nullopt;
  for (int j = 0; j < static_cast<int>(gpulets_.size()); ++j) {
    if (j != i && gpulets_[j].device == gpulets_[i].device) return j;
  }
  return std::nullopt;
}

void Layout::RevertSplit(int i) {
  const auto j = Beside(i);
  if (!j || !gpulets_[i].members.empty() || !gpulets_[*j].members.empty()) return;
  gpulets_[std::min(i, *j)].lane_class = input_.whole();
  gpulets_.erase(gpulets_.begin() + std::max(i, *j));
}

double Layout::Slowdown(LaneClass lane, ModelId model, LaneClass other,
                        std::span<const LaneMember> beside) const {
  double slowdown = 1;
  if (interference_ == nullptr) return slowdown;
  const Throughput& own = uses_[lane.value()][model.value()];
  const auto& theirs = uses_[other.value()];
  for (const LaneMember& neighbour : beside) {
    slowdown = std::max(slowdown, interference_->Slowdown(own, theirs[neighbour.model.value()]));
  }
  return slowdown;
}

double Layout::Slowdown(int i, ModelId model, std::span<const LaneMember> beside) const {
  const auto other = Beside(i);
  if (!other) return 1;
  return Slowdown(gpulets_[i].lane_class, model, gpulets_[*other].lane_class, beside);
}

double Layout::MostAlone(LaneClass lane, ModelId model) const {
  const auto rest = ComplementOf(lane);
  return MostRate(input_, lane, model, rest ? Slowdown(lane, model, *rest, expected_) : 1);
}

std::vector<LaneMember> Layout::Slowed(int i, std::vector<LaneMember> members,
                                       std::span<const LaneMember> beside) const {
  if (!neighbours_bear_it_) return members;
  for (LaneMember& member : members) member.slowdown = Slowdown(i, member.model, beside);
  return members;
}

std::vector<LaneMember> Layout::InOther(int i) const {
  const auto other = Beside(i);
  if (!other) return {};
  return gpulets_[*other].members.empty() ? expected_ : gpulets_[*other].members;
}

bool Layout::Serves(int device, ModelId model) const {
  return std::ranges::any_of(gpulets_, [&](const GpuLet& gpulet) {
    return gpulet.device == device &&
           std::ranges::find(gpulet.members, model, &LaneMember::model) != gpulet.members.end();
  });
}

bool Layout::HasMemoryFor(ModelId model, int device) const {
  if (held_mb_.empty()) return true;
  // Lanes of a device share what it has loaded.
  return input_.device.HasMemoryFor(held_mb_[device] + input_.models[model.value()].memory_mb) ||
         Serves(device, model);
}

std::string Layout::MemoryInTheWayOf(ModelId model) const {
  int first = input_.devices;
  int full = 0;
  for (int device = input_.devices - 1; device >= 0; --device) {
    if (HasMemoryFor(model, device)) continue;
    first = device;
    ++full;
  }
  if (full == 0) return "";
  std::vector<ModelId> models = {model};
  for (ModelId::rep m = 0; m < input_.models.size(); ++m) {
    if (Serves(first, ModelId{m})) models.push_back(ModelId{m});
  }
  return "memory is in its way on " + std::to_string(full) + " of " +
         std::to_string(input_.devices) + " devices: with it " +
         TooMuchMemory(input_, first, models);
}

double Layout::Most(int i, ModelId model, double rate_rps) const {
  constexpr double kRounding = 1e-9;  // so that the cycle is found again
  if (!HasMemoryFor(model, gpulets_[i].device)) return 0;
  const auto other = Beside(i);
  const bool free = !other || gpulets_[*other].members.empty();
  const std::vector<LaneMember> beside = InOther(i);
  std::vector<LaneMember> members = Slowed(i, gpulets_[i].members, beside);
  const auto found = std::ranges::find(members, model, &LaneMember::model);
  double before = 0;
  if (found != members.end()) {
    before = found->rate_rps;
    members.erase(found);
  } else if (interference_ != nullptr && neighbours_bear_it_ && !free) {
    std::vector<LaneMember> with = gpulets_[i].members;
    with.push_back({.model = model});
    if (!FitCycle(input_, gpulets_[*other].lane_class, Slowed(*other, beside, with))) return 0;
  }
  const double slowdown = Slowdown(i, model, beside);
  const double most = MostBeside(input_, gpulets_[i].lane_class, members, model, slowdown);
  const double given = std::clamp(most * (1 - kRounding) - before, 0.0, rate_rps);
  // Less than the most is a smaller batch, and a measured one may take longer than a larger one.
  members.push_back({.model = model, .rate_rps = before + given, .slowdown = slowdown});
  return FitCycle(input_, gpulets_[i].lane_class, members) ? given : 0;
}

void Layout::Add(int i, ModelId model, double rate_rps) {
  const int device = gpulets_[i].device;
  if (!held_mb_.empty() && !Serves(device, model)) {
    held_mb_[device] += input_.models[model.value()].memory_mb;
  }
  const double slowdown = Slowdown(i, model, InOther(i));
  auto& members = gpulets_[i].members;
  const auto found = std::ranges::find(members, model, &LaneMember::model);
  if (found != members.end()) {
    found->rate_rps += rate_rps;
    found->slowdown = slowdown;
  } else {
    members.push_back({.model = model, .rate_rps = rate_rps, .slowdown = slowdown});
  }
}

Plan Layout::ToPlan(std::uint64_t epoch) const {
  Plan plan{.epoch = epoch};
  for (int i = 0; i < static_cast<int>(gpulets_.size()); ++i) {
    const GpuLet& gpulet = gpulets_[i];
    if (gpulet.members.empty()) continue;
    const auto other = Beside(i);
    const auto members =
        other ? Slowed(i, gpulet.members, gpulets_[*other].members) : gpulet.members;
    const auto fit = FitCycle(input_, gpulet.lane_class, members);
    CHECK(fit, "Add was called with what Most allows");
    LanePlan& lane = plan.lanes.emplace_back();
    lane.spec = {.device = DeviceId{static_cast<DeviceId::rep>(gpulet.device)},
                 .lane_class = gpulet.lane_class,
                 .fraction = input_.share(gpulet.lane_class)};
    lane.cycle = fit->cycle;
    Duration offset{};
    for (std::size_t k = 0; k < gpulet.members.size(); ++k) {
      const ModelId model = gpulet.members[k].model;
      const Duration alone = input_.Latency(model, fit->batches[k], gpulet.lane_class);
      const Duration length =
          Nanos(std::llround(static_cast<double>(alone.count()) * members[k].slowdown));
      lane.entries.push_back(
          {.model = model, .batch = fit->batches[k], .offset = offset, .length = length});
      offset += length;
    }
  }
  return plan;
}

}  // namespace tactus
