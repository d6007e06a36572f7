#include "runtime/partition.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>
#include <utility>

namespace tactus {
namespace {

using Kind = ReorganiserStep::Kind;

constexpr std::chrono::milliseconds kLookAgain{1};

}  // namespace

Partition::Partition(std::vector<int> cores, bool pinned, DispatchLoop& loop, ModelHost& host,
                     Places& places)
    : cores_(std::move(cores)),
      pinned_(pinned),
      loop_(loop),
      host_(host),
      places_(places),
      made_(Lanes().size()) {}

void Partition::Start() {
  host_.SetPlan(std::make_shared<Plan>(Plan{.lanes = std::vector<LanePlan>(made_.size())}), {});
  loop_.Change([count = made_.size()](Dispatcher& dispatcher) {
    for (std::size_t i = 0; i < count; ++i) {
      dispatcher.SetLaneOpen(LaneId{static_cast<LaneId::rep>(i)}, false);
    }
  });
}

Plan Partition::WithOurIds(Plan plan, const std::vector<std::string>& models) {
  for (LanePlan& lane : plan.lanes) {
    for (PlanEntry& entry : lane.entries) {
      const std::string& name = models[entry.model.value()];
      const auto known = std::ranges::find(names_, name) - names_.begin();
      if (known == std::ssize(names_)) names_.push_back(name);
      entry.model = ModelId{static_cast<ModelId::rep>(known)};
    }
  }
  return plan;
}

Status Partition::Adopt(const Plan& plan, const std::vector<std::string>& models) {
  const std::lock_guard lock(mutex_);
  auto begun = reorganiser_.Begin(WithOurIds(plan, models));
  if (!begun) return std::unexpected(begun.error());
  Change change;
  change.steps.assign(begun->begin(), begun->end());
  Run(change);
  const std::lock_guard publish(layout_mutex_);
  if (!change.made) {
    ++layout_.given_up;
    return change.made;
  }
  layout_.plan = reorganiser_.next();
  layout_.models = names_;
  ++layout_.changes;
  return {};
}

DeviceLayout Partition::layout() const {
  const std::lock_guard lock(layout_mutex_);
  return layout_;
}

void Partition::Run(Change& change) {
  while (!change.steps.empty() || !change.draining.empty()) {
    if (change.steps.empty()) {
      const LaneId lane = change.draining.back();
      change.draining.pop_back();
      Await(lane, false);
      const Reorganiser::Steps more = reorganiser_.Drained(lane);
      change.steps.assign(more.begin(), more.end());
      continue;
    }
    const ReorganiserStep step = change.steps.front();
    change.steps.pop_front();
    if (step.kind == Kind::kMake || step.kind == Kind::kLoad) {
      Prepare(step, change);
      continue;
    }
    CarryOut(step);
    if (step.kind == Kind::kClose) change.draining.push_back(step.lane);
  }
}

// Where one lane cannot be had, nobody needs the others.
void Partition::Prepare(const ReorganiserStep& step, Change& change) {
  if (change.made) {
    change.made = step.kind == Kind::kMake
                      ? Make(step.lane, step.spec)
                      : places_.Furnish(step.lane, made_[step.lane.value()], NamesOn(step.lane));
  }
  const Reorganiser::Steps more =
      change.made ? reorganiser_.Prepared(step.lane) : reorganiser_.Failed(step.lane);
  change.steps.insert(change.steps.end(), more.begin(), more.end());
}

void Partition::CarryOut(const ReorganiserStep& step) {
  switch (step.kind) {
    case Kind::kMake:
    case Kind::kLoad:
      return;  // Prepare's
    case Kind::kAdopt:
      return host_.SetPlan(reorganiser_.next(), names_);
    case Kind::kOpen:
    case Kind::kClose:
      return loop_.Change([&](Dispatcher& dispatcher) {
        dispatcher.SetLaneOpen(step.lane, step.kind == Kind::kOpen);
      });
    case Kind::kUnload:
      Await(step.lane, true);
      return places_.Keep(step.lane, NamesOn(step.lane));
    case Kind::kRemove:
      made_[step.lane.value()] = {};
      return places_.Clear(step.lane);
  }
}

Status Partition::Make(LaneId lane, LaneSpec spec) {
  const auto all = static_cast<double>(cores_.size());
  spec.threads = std::max(1, static_cast<int>(std::lround(spec.fraction * all)));
  if (pinned_) spec.cores = Choose(lane, spec.threads);
  made_[lane.value()] = spec;
  loop_.Change([&](Dispatcher& dispatcher) {
    dispatcher.SetLaneShare(lane, spec.lane_class, spec.fraction);
  });
  loop_.Pin(lane, spec.cores);
  return places_.Furnish(lane, spec, NamesOn(lane));
}

std::vector<int> Partition::Choose(LaneId lane, int threads) const {
  const auto& next = reorganiser_.next()->lanes;
  std::vector<int> free, taken;
  for (const int core : cores_) {
    bool used = false;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const bool stays = i != lane.value() && !next[i].entries.empty();
      used = used || (stays && std::ranges::find(made_[i].cores, core) != made_[i].cores.end());
    }
    (used ? taken : free).push_back(core);
  }
  free.insert(free.end(), taken.begin(), taken.end());
  free.resize(std::min(free.size(), static_cast<std::size_t>(threads)));
  return free;
}

std::vector<std::string> Partition::NamesOn(LaneId lane) const {
  std::vector<std::string> names;
  for (const PlanEntry& entry : reorganiser_.next()->lanes[lane.value()].entries) {
    names.push_back(names_[entry.model.value()]);
  }
  return names;
}

void Partition::Await(LaneId lane, bool planned_may) {
  const auto awaited = [&](const View& view, const RunningBatch& batch) {
    if (!planned_may) return true;
    const auto& entries = view.plan->lanes[lane.value()].entries;
    return std::ranges::find(entries, batch.model, &PlanEntry::model) == entries.end();
  };
  for (bool runs = true; runs;) {
    loop_.Change([&](Dispatcher& dispatcher) {
      const View view = dispatcher.view();
      runs = std::ranges::any_of(view.lanes[lane.value()].running(),
                                 [&](const RunningBatch& batch) { return awaited(view, batch); });
    });
    if (runs) std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace tactus
