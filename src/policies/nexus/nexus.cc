#include "policies/nexus/nexus.h"

#include <algorithm>
#include <limits>

#include "core/window_drop.h"

namespace tactus {
namespace {

// Which front end a request comes in by: no pattern that its id could have.
std::uint64_t Scatter(std::uint64_t id) {
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9u;
  id = (id ^ (id >> 27)) * 0x94d049bb133111ebu;
  return id ^ (id >> 31);
}

}  // namespace

void Nexus::Prepare(const View& view) {
  lost_.Prepare(view);
  TakePlan(view);
}

void Nexus::OnPlan(const View& view) { TakePlan(view); }

void Nexus::TakePlan(const View& view) {
  models_.assign(view.models.size(), ModelState{});
  lanes_.assign(view.lanes.size(), LaneTurns{});
  open_.clear();
  for (const Lane& lane : view.lanes) open_.push_back(lane.open);
  popping_ = ModelId{};
  for (std::size_t i = 0; i < view.lanes.size(); ++i) {
    if (view.plan != nullptr) {
      if (i >= view.plan->lanes.size()) continue;
      for (const PlanEntry& e : view.plan->lanes[i].entries) AddTurn(view, view.lanes[i], e);
      continue;
    }
    for (std::size_t m = 0; m < view.models.size(); ++m) {
      AddTurn(view, view.lanes[i], {.model = ModelId{static_cast<ModelId::rep>(m)}});
    }
  }
  for (std::size_t m = 0; m < models_.size(); ++m) {
    models_[m].Start(options_.front_ends);
    models_[m].count_again = true;
  }
}

void Nexus::AddTurn(const View& view, const Lane& lane, const PlanEntry& entry) {
  const std::size_t m = entry.model.value();
  if (m >= view.models.size() || !view.models[m].loaded || !lane.serves.contains(entry.model)) {
    return;
  }
  const int batch = std::clamp(entry.batch, 1, LargestBatch(view, entry.model));
  const Duration cycle =
      view.plan != nullptr ? view.plan->lanes[lane.id.value()].cycle : Seconds(1);
  const auto route = static_cast<std::uint32_t>(models_[m].routes.size());
  models_[m].routes.push_back(
      {.lane = lane.id, .weight = batch / ToSeconds(cycle), .open = lane.open});
  lanes_[lane.id.value()].turns.push_back({.model = entry.model, .batch = batch, .route = route});
}

void Nexus::OnArrive(ModelId m, const Request& request) {
  CountExamined();
  if (options_.front_ends == 0) return;
  models_[m.value()].Send(Scatter(request.id.value()) % options_.front_ends);
}

// What front ends sent to a lane that closes or dies they send to another that has the model.
void Nexus::OnLaneChange(const Lane& lane) {
  const std::size_t i = lane.id.value();
  if (open_[i] == lane.open) return;
  open_[i] = lane.open;
  for (const LaneTurns::Turn& turn : lanes_[i].turns) {
    ModelState& model = models_[turn.model.value()];
    model.count_again |= model.SetOpen(turn.route, lane.open);
  }
}

void Nexus::OnPopFront(ModelId m, int count) {
  if (options_.front_ends == 0) return;
  ModelState& model = models_[m.value()];
  popping_ == m ? model.Take(popping_route_, count) : model.TakeBack(count);
  popping_ = ModelId{};
}

// Requests that came back or went away by another door than the front.
void Nexus::CountAgain(const View& view) {
  for (std::size_t m = 0; m < models_.size(); ++m) {
    ModelState& model = models_[m];
    if (!model.count_again || options_.front_ends == 0) continue;
    model.count_again = false;
    const int waiting = static_cast<int>(view.queues[m].size());
    model.TakeBack(model.claimed - waiting);
    for (int i = model.claimed; i < waiting; ++i) model.Send(i % options_.front_ends);
  }
}

int Nexus::Mine(const LaneTurns::Turn& turn) const {
  if (options_.front_ends == 0) return std::numeric_limits<int>::max();
  return models_[turn.model.value()].routes[turn.route].claims;
}

Decision Nexus::Decide(const View& view, TimePoint now) {
  CountAgain(view);
  popping_ = ModelId{};
  if (const auto drop = lost_.Find(view, now)) return *drop;
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot()) continue;
    const auto taken = lanes_[lane.id.value()].Take(
        view, lane, options_.grow, now, [&](const LaneTurns::Turn& turn) { return Mine(turn); },
        [](const LaneTurns::Turn&) { return LaneTurns::kAnyRoom; },
        [](const RequestQueue& queue, int planned, int mine, auto fits) {
          return WindowDrop(static_cast<int>(queue.size()), planned, mine, fits);
        });
    if (!taken) continue;
    if (std::holds_alternative<Dispatch>(taken->decision)) {
      popping_ = taken->turn.model;
      popping_route_ = taken->turn.route;
    }
    return taken->decision;
  }
  return Wait{lost_.next()};
}

}  // namespace tactus
