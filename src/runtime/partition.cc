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

Status Partition::Adopt(const Plan& plan, const std::vector<std::string>& models) {
  const std::lock_guard lock(mutex_);
  auto begun = reorganiser_.Begin(plan);
  if (!begun) return std::unexpected(begun.error());
  std::deque<ReorganiserStep> steps(begun->begin(), begun->end());
  std::vector<LaneId> draining;
  while (!steps.empty() || !draining.empty()) {
    Reorganiser::Steps more;
    if (steps.empty()) {
      AwaitDrained(draining.back());
      more = reorganiser_.Drained(draining.back());
      draining.pop_back();
    } else {
      const ReorganiserStep step = steps.front();
      steps.pop_front();
      CarryOut(step, models);
      if (step.kind == Kind::kClose) draining.push_back(step.lane);
      if (step.kind == Kind::kMake || step.kind == Kind::kLoad) {
        more = reorganiser_.Prepared(step.lane);
      }
    }
    steps.insert(steps.end(), more.begin(), more.end());
  }
  return {};
}

void Partition::CarryOut(const ReorganiserStep& step, const std::vector<std::string>& models) {
  switch (step.kind) {
    case Kind::kMake:
      return Make(step.lane, step.spec, models);
    case Kind::kLoad:
      return places_.Furnish(step.lane, made_[step.lane.value()], NamesOn(step.lane, models));
    case Kind::kAdopt:
      return host_.SetPlan(reorganiser_.next(), models);
    case Kind::kOpen:
    case Kind::kClose:
      return loop_.Change([&](Dispatcher& dispatcher) {
        dispatcher.SetLaneOpen(step.lane, step.kind == Kind::kOpen);
      });
    case Kind::kRemove:
      made_[step.lane.value()] = {};
      return places_.Clear(step.lane);
  }
}

void Partition::Make(LaneId lane, LaneSpec spec, const std::vector<std::string>& models) {
  const auto all = static_cast<double>(cores_.size());
  spec.threads = std::max(1, static_cast<int>(std::lround(spec.fraction * all)));
  if (pinned_) spec.cores = Choose(lane, spec.threads);
  made_[lane.value()] = spec;
  loop_.Change([&](Dispatcher& dispatcher) {
    dispatcher.SetLaneShare(lane, spec.lane_class, spec.fraction);
  });
  loop_.Pin(lane, spec.cores);
  places_.Furnish(lane, spec, NamesOn(lane, models));
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

std::vector<std::string> Partition::NamesOn(LaneId lane,
                                            const std::vector<std::string>& models) const {
  std::vector<std::string> names;
  for (const PlanEntry& entry : reorganiser_.next()->lanes[lane.value()].entries) {
    names.push_back(models[entry.model.value()]);
  }
  return names;
}

void Partition::AwaitDrained(LaneId lane) {
  for (bool runs = true; runs;) {
    loop_.Change([&](Dispatcher& dispatcher) {
      runs = !dispatcher.view().lanes[lane.value()].batches.empty();
    });
    if (runs) std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace tactus
