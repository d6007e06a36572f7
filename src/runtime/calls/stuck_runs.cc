// Lanes that are held by runs without end or whose engine is silent, and models that no lane has:
// what the turns of a dispatcher do about them.
#include "runtime/calls/stuck_runs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/calls/dispatch_turns.h"

namespace tactus {
namespace {

constexpr Duration kMayBeDead = Millis(500);  // a lane that comes back sooner counts as there

}  // namespace

std::shared_ptr<const Error> StuckErrorOf(const ModelSpec& model) {
  return std::make_shared<const Error>(
      Error{ErrorCode::kUnavailable,
            fmt::format("every lane that could serve model '{}' is held by a run that takes far "
                        "longer than its profile",
                        model.name)});
}

std::shared_ptr<const Error> LeftOutErrorOf(const ModelSpec& model) {
  return std::make_shared<const Error>(
      Error{ErrorCode::kUnavailable,
            fmt::format("the engine's process ended, and no lane has model '{}' again yet; it is "
                        "tried again, and the server's log says why it cannot be had",
                        model.name)});
}

std::shared_ptr<const Error> StoppedErrorOf(const ModelSpec& model) {
  return std::make_shared<const Error>(
      Error{ErrorCode::kDeadlineExceeded,
            fmt::format("the run of model '{}' took far longer than its profile, past the "
                        "request's deadline, and was stopped",
                        model.name)});
}

std::string DispatchTurns::HoldStuck(std::size_t worker, TimePoint begun) {
  std::string model;
  Change([&](Dispatcher&) { model = HoldStuckNow(*workers_[worker], begun); });
  return model;
}

std::string DispatchTurns::HoldStuckNow(LaneWorker& worker, TimePoint begun) {
  LaunchOrder& order = worker.order();
  if (!order.busy || worker.running().begun != begun) return {};
  // The profile may be of smaller inputs: what its owner allows is no run without end, nor is what
  // the model was seen to take.
  const ServedModel& model = *order.model;
  const bool ran = model.counters.executions.load(std::memory_order_relaxed) > 0;
  const Duration seen = ran ? 2 * model.recent_batch : Duration{};
  if (now_ - begun <= std::max(model.model.slo, seen)) return {};
  if (!order.stuck) {
    order.stuck = true;
    stuck_lanes_[order.lane.value()].runs.fetch_add(1, std::memory_order_relaxed);
    ++stuck_lanes_[order.lane.value()].slots;
    CloseStuck(order.lane);
  }
  // Who waits for it still gets its answer; it is stopped when none could be in time.
  const auto late = [&](const LaunchOrder::Row& row) { return row.pending->deadline < now_; };
  const bool runs_late = options_.dispatcher.expiry == Expiry::kNever;
  if (!runs_late && std::all_of(order.rows.begin(), order.rows.end(), late)) AbandonOrder(order);
  return order.model->spec.name;
}

void DispatchTurns::CloseStuck(LaneId id) {
  const Lane& lane = dispatcher_.view().lanes[id.value()];
  StuckLane& stuck = stuck_lanes_[id.value()];
  if (stuck.slots < lane.slots || stuck.now.load(std::memory_order_relaxed)) return;
  stuck.now.store(true, std::memory_order_relaxed);
  lanes_stuck_.fetch_add(1, std::memory_order_relaxed);
  if (!stuck.silent) Hold(id);
  RefuseWaiting();
}

void DispatchTurns::Hold(LaneId id) {
  if (!dispatcher_.view().lanes[id.value()].open || options_.plans) return;
  stuck_lanes_[id.value()].closed = true;
  dispatcher_.SetLaneOpen(id, false);
}

// Once neither of the two reasons holds it.
void DispatchTurns::Release(LaneId id) {
  if (!std::exchange(stuck_lanes_[id.value()].closed, false)) return;
  dispatcher_.SetLaneOpen(id, true);
}

bool DispatchTurns::SetSilent(LaneId lane, bool silent) {
  bool before = false;
  Change([&](Dispatcher&) {
    StuckLane& held = stuck_lanes_[lane.value()];
    before = held.silent.exchange(silent, std::memory_order_relaxed);
    if (before == silent || held.now.load(std::memory_order_relaxed)) return;
    silent ? Hold(lane) : Release(lane);
  });
  return before;
}

bool DispatchTurns::LoseIdle(LaneId id) {
  bool lost = false;
  Change([&](Dispatcher& dispatcher) {
    const Lane& lane = dispatcher.view().lanes[id.value()];
    if (!lane.running().empty()) return;
    lost = std::exchange(stuck_lanes_[id.value()].closed, false) || lane.open;
    if (lane.open) dispatcher.SetLaneOpen(id, false);
    if (lost) Die(stuck_lanes_[id.value()]);
  });
  return lost;
}

void DispatchTurns::Die(StuckLane& lane) const {
  lane.dead_since.store(now_, std::memory_order_relaxed);
  lane.deaths.fetch_add(1, std::memory_order_relaxed);
}

void DispatchTurns::OpenAnew(LaneId id) {
  stuck_lanes_[id.value()].dead_since.store(kNever, std::memory_order_relaxed);
  dispatcher_.SetLaneOpen(id, true);
}

// A journal has them as cancelled, so that a replay does the same.
void DispatchTurns::RefuseWaiting() {
  const auto queues = dispatcher_.view().queues;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const ModelId model{static_cast<ModelId::rep>(i)};
    if (queues[i].empty()) continue;
    refusal_ = NoLaneFor(*served_[i]);
    if (refusal_ == nullptr) continue;
    refused_as_ = Outcome::kShed;
    while (!queues[i].empty()) dispatcher_.Cancel(model, queues[i].front().id);
    refusal_ = nullptr;
  }
}

std::shared_ptr<const Error> DispatchTurns::NoLaneFor(const ServedModel& model) const {
  if (model.on_no_lane()) return LeftOutErrorOf(model.spec);
  const bool stuck = lanes_stuck_.load(std::memory_order_relaxed) > 0 && OnlyStuck(model.id);
  return stuck ? StuckErrorOf(model.spec) : nullptr;
}

// Whether there is no other lane for it.
bool DispatchTurns::OnlyStuck(ModelId model) const {
  bool any = false;
  for (const Lane& lane : dispatcher_.view().lanes) {
    if (!lane.serves.contains(model)) continue;
    if (!stuck_lanes_[lane.id.value()].now.load(std::memory_order_relaxed)) return false;
    any = true;
  }
  return any;
}

// After Dispatcher::Finish. A lane that died stays closed, for whoever brings it back.
void DispatchTurns::EndStuck(LaunchOrder& order) {
  StuckLane& stuck = stuck_lanes_[order.lane.value()];
  if (order.report.status == BatchStatus::kLost) {
    stuck.closed = false;
    Die(stuck);
  }
  if (!order.stuck) return;
  order.stuck = false;
  --stuck.slots;
  if (!stuck.now.exchange(false, std::memory_order_relaxed)) return;
  lanes_stuck_.fetch_sub(1, std::memory_order_relaxed);
  if (!stuck.silent) Release(order.lane);
}

bool DispatchTurns::AllHeld() const {
  return std::ranges::all_of(stuck_lanes_, [this](const StuckLane& lane) { return IsHeld(lane); });
}

bool DispatchTurns::IsHeld(const StuckLane& lane) const {
  const TimePoint dead_since = lane.dead_since.load(std::memory_order_relaxed);
  const bool dead =
      dead_since != kNever && clock_.Now() - dead_since > kMayBeDead && !options_.plans;
  return dead || lane.now.load(std::memory_order_relaxed) ||
         lane.silent.load(std::memory_order_relaxed);
}

DispatchTurns::StuckReading DispatchTurns::stuck(LaneId lane) const {
  const StuckLane& stuck = stuck_lanes_[lane.value()];
  return {stuck.runs.load(std::memory_order_relaxed), stuck.now.load(std::memory_order_relaxed),
          IsHeld(stuck), stuck.deaths.load(std::memory_order_relaxed)};
}

}  // namespace tactus
