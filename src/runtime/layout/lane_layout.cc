#include "runtime/layout/lane_layout.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace tactus {
namespace {

using Kind = TransitionStep::Kind;

constexpr std::chrono::milliseconds kAdoptionPause{1};

Status Ended() {
  return Fail(ErrorCode::kCancelled, "the server is stopping, and changes its lanes no more");
}

}  // namespace

LaneLayout::LaneLayout(Options options, const WallClock& clock, DispatchTurns& loop,
                       ModelHost& host, LaneLoader& loader)
    : options_(std::move(options)),
      clock_(clock),
      loop_(loop),
      host_(host),
      loader_(loader),
      made_(Lanes().size()),
      drains_(options_.longest_batch) {}

void LaneLayout::Start() {
  host_.SetPlan(std::make_shared<Plan>(Plan{.lanes = std::vector<LanePlan>(made_.size())}), {});
  loop_.Change([count = made_.size()](Dispatcher& dispatcher) {
    for (std::size_t i = 0; i < count; ++i) {
      dispatcher.SetLaneOpen(LaneId{static_cast<LaneId::rep>(i)}, false);
    }
  });
}

Plan LaneLayout::WithOurIds(const Plan& plan, const std::vector<std::string>& models) {
  return Renumbered(plan, models, [&](LaneId, const std::string& name) {
    if (!FindModel(names_, name)) names_.push_back(name);
    return FindModel(names_, name);
  });
}

Status LaneLayout::Adopt(const Plan& plan, const std::vector<std::string>& models) {
  const std::lock_guard lock(mutex_);
  if (ended_.load()) return Ended();
  auto begun = transition_.Begin(WithOurIds(plan, models));
  if (!begun) return std::unexpected(begun.error());
  Change change;
  change.steps.assign(begun->begin(), begun->end());
  Run(change);
  const std::lock_guard publish(layout_mutex_);
  drains_.EndAll();
  if (!change.made) {
    if (change.made.error().code != ErrorCode::kCancelled) ++layout_.given_up;
    return change.made;
  }
  layout_.plan = transition_.next();
  layout_.models = names_;
  ++layout_.changes;
  return {};
}

void LaneLayout::Stop() {
  EndChanges();
  const std::lock_guard no_change(mutex_);
}

DeviceLayout LaneLayout::layout() const {
  const std::lock_guard lock(layout_mutex_);
  DeviceLayout layout = layout_;
  layout.draining = drains_.lanes();
  layout.drain = drains_.Longest(clock_.Now());
  return layout;
}

void LaneLayout::Run(Change& change) {
  while (!change.steps.empty() || !change.draining.empty()) {
    if (change.steps.empty()) {
      if (!AwaitOne(change)) return;
      continue;
    }
    const TransitionStep step = change.steps.front();
    change.steps.pop_front();
    if (step.kind == Kind::kMake || step.kind == Kind::kLoad) {
      Prepare(step, change);
      continue;
    }
    CarryOut(step);
    if (step.kind != Kind::kClose && step.kind != Kind::kUnload) continue;
    change.draining.push_back({step.lane, step.kind == Kind::kUnload});
    const std::lock_guard lock(layout_mutex_);
    drains_.Begin(step.lane, clock_.Now());
  }
}

// Where one lane cannot be had, nobody needs the others.
void LaneLayout::Prepare(const TransitionStep& step, Change& change) {
  if (change.made && ended_.load()) change.made = Ended();
  if (change.made) {
    change.made = step.kind == Kind::kMake
                      ? Make(step.lane, step.spec)
                      : loader_.Furnish(step.lane, made_[step.lane.value()], NamesOn(step.lane));
  }
  const PlanTransition::Steps more =
      change.made ? transition_.Prepared(step.lane) : transition_.Failed(step.lane);
  change.steps.insert(change.steps.end(), more.begin(), more.end());
}

void LaneLayout::CarryOut(const TransitionStep& step) {
  switch (step.kind) {
    case Kind::kMake:
    case Kind::kLoad:
    case Kind::kUnload:
      return;  // Prepare's, and AwaitOne's
    case Kind::kAdopt:
      return host_.SetPlan(transition_.next(), names_);
    case Kind::kOpen:
    case Kind::kClose:
      return loop_.Change([&](Dispatcher& dispatcher) {
        dispatcher.SetLaneOpen(step.lane, step.kind == Kind::kOpen);
      });
    case Kind::kRemove:
      made_[step.lane.value()] = {};
      return loader_.Clear(step.lane);
  }
}

Status LaneLayout::Make(LaneId lane, LaneSpec spec) {
  if (options_.on_device) {
    spec.placement = PlaceOnDevice(lane, spec.fraction);
  } else {
    const auto all = static_cast<double>(options_.cores.size());
    CpuPlacement cpu{.threads = std::max(1, static_cast<int>(std::lround(spec.fraction * all)))};
    if (options_.pinned) cpu.cores = Choose(lane, cpu.threads);
    spec.placement = std::move(cpu);
  }
  made_[lane.value()] = spec;
  loop_.Change([&](Dispatcher& dispatcher) {
    dispatcher.SetLaneShare(lane, spec.lane_class, spec.fraction);
  });
  loop_.Pin(lane, CoresOf(spec.placement));
  return loader_.Furnish(lane, spec, NamesOn(lane));
}

std::vector<int> LaneLayout::Choose(LaneId lane, int threads) const {
  const auto& next = transition_.next()->lanes;
  std::vector<int> free, taken;
  for (const int core : options_.cores) {
    bool used = false;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const bool stays = i != lane.value() && !next[i].entries.empty();
      const std::vector<int> cores = CoresOf(made_[i].placement);
      used = used || (stays && std::ranges::find(cores, core) != cores.end());
    }
    (used ? taken : free).push_back(core);
  }
  free.insert(free.end(), taken.begin(), taken.end());
  free.resize(std::min(free.size(), static_cast<std::size_t>(threads)));
  return free;
}

CudaPlacement LaneLayout::PlaceOnDevice(LaneId lane, double fraction) const {
  constexpr double kSlack = 0.005;  // shares may be written rounded
  const auto& next = transition_.next()->lanes;
  std::vector<std::pair<double, double>> taken;
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const auto* place = std::get_if<CudaPlacement>(&made_[i].placement);
    const bool stays = i != lane.value() && !next[i].entries.empty();
    if (stays && place != nullptr) {
      taken.emplace_back(place->offset, place->offset + made_[i].fraction);
    }
  }
  std::ranges::sort(taken);
  double offset = 0;
  for (const auto& [begin, end] : taken) {
    if (offset + fraction <= begin + kSlack) break;
    offset = std::max(offset, end);
  }
  return {.offset = std::clamp(offset, 0.0, std::max(0.0, 1 - fraction))};
}

std::vector<std::string> LaneLayout::NamesOn(LaneId lane) const {
  std::vector<std::string> names;
  for (const PlanEntry& entry : transition_.next()->lanes[lane.value()].entries) {
    names.push_back(names_[entry.model.value()]);
  }
  return names;
}

bool LaneLayout::Runs(const View& view, const Draining& lane) {
  return std::ranges::any_of(view.lanes[lane.lane.value()].running(), [&](const auto& batch) {
    const auto& entries = view.plan->lanes[lane.lane.value()].entries;
    const bool planned =
        std::ranges::find(entries, batch.model, &PlanEntry::model) != entries.end();
    return !(lane.stays && planned);
  });
}

std::optional<LaneLayout::Draining> LaneLayout::Drained(const Change& change) {
  std::optional<Draining> drained;
  loop_.Change([&](Dispatcher& dispatcher) {
    const View view = dispatcher.view();
    for (const Draining& lane : change.draining) {
      if (!Runs(view, lane)) drained = lane;
    }
  });
  return drained;
}

bool LaneLayout::AwaitOne(Change& change) {
  std::optional<Draining> drained;
  while (!drained) {
    if (ended_.load()) return false;
    if (drained = Drained(change); drained) break;
    WarnOfDrains();
    std::this_thread::sleep_for(kAdoptionPause);
  }
  std::erase_if(change.draining, [&](const Draining& each) { return each.lane == drained->lane; });
  {
    const std::lock_guard lock(layout_mutex_);
    drains_.End(drained->lane);
  }
  if (drained->stays) {
    loader_.Keep(drained->lane, NamesOn(drained->lane));
  } else {
    const PlanTransition::Steps more = transition_.Drained(drained->lane);
    change.steps.assign(more.begin(), more.end());
  }
  return true;
}

void LaneLayout::WarnOfDrains() {
  const auto overdue = [this] {
    const std::lock_guard lock(layout_mutex_);
    return drains_.Overdue(clock_.Now());
  }();
  if (!overdue || !options_.log) return;
  options_.log(fmt::format(
      "plan: lane {} of {:g} % has drained for more than {:.3g} s, {} times the longest batch of "
      "the profiles or more: what runs there may never end, and the change waits for it",
      overdue->value(), 100 * made_[overdue->value()].fraction, ToSeconds(drains_.bound()),
      DrainWatch::kMultiple));
}

}  // namespace tactus
