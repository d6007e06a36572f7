#include "policies/nexus/nexus.h"

#include <algorithm>

namespace tactus {
namespace {

// Which front end a request comes in by: no pattern that its id could have.
std::uint64_t Scatter(std::uint64_t id) {
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9u;
  id = (id ^ (id >> 27)) * 0x94d049bb133111ebu;
  return id ^ (id >> 31);
}

// Window drop: the first position from which a planned batch fits; 0 when there is none, or when
// the lane has not got a planned batch. What lies before it is lost to the other lanes as well,
// which come by later: each gives up its part of it.
int Head(const RequestQueue& queue, int planned, int mine, auto fits) {
  if (mine < planned) return 0;
  const int last = static_cast<int>(queue.size()) - planned;
  int head = 0;
  while (head <= last && !fits(head, planned)) ++head;
  return head <= last ? head : 0;
}

}  // namespace

void Nexus::Prepare(const View& view) {
  lost_.Prepare(view);
  TakePlan(view);
}

void Nexus::OnPlan(const View& view) { TakePlan(view); }

void Nexus::TakePlan(const View& view) {
  models_.assign(view.models.size(), ModelRoutes{});
  lanes_.assign(view.lanes.size(), LaneTurns{});
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
    models_[m].credit.assign(models_[m].routes.size() * std::max(options_.front_ends, 1), 0);
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
  models_[m].routes.push_back({.lane = lane.id, .weight = batch / ToSeconds(cycle)});
  lanes_[lane.id.value()].turns.push_back({entry.model, batch, route});
}

// Weighted round robin: each route earns its weight, the richest pays for all.
void Nexus::Send(ModelRoutes& model, std::uint64_t front_end) {
  const std::size_t routes = model.routes.size();
  if (routes == 0) return;
  double* const credit = model.credit.data() + front_end * routes;
  double total = 0;
  std::size_t best = 0;
  for (std::size_t r = 0; r < routes; ++r) {
    credit[r] += model.routes[r].weight;
    total += model.routes[r].weight;
    if (credit[r] > credit[best]) best = r;
  }
  credit[best] -= total;
  ++model.routes[best].claims;
  ++model.claimed;
}

void Nexus::TakeBack(ModelRoutes& model, int count) {
  for (; count > 0 && model.claimed > 0; --count) {
    const auto most =
        std::max_element(model.routes.begin(), model.routes.end(),
                         [](const Route& a, const Route& b) { return a.claims < b.claims; });
    --most->claims;
    --model.claimed;
  }
}

void Nexus::OnArrive(ModelId m, const Request& request) {
  ++examined_;
  if (options_.front_ends == 0) return;
  Send(models_[m.value()], Scatter(request.id.value()) % options_.front_ends);
}

void Nexus::OnPopFront(ModelId m, int count) {
  if (options_.front_ends == 0) return;
  ModelRoutes& model = models_[m.value()];
  if (popping_ == m) {
    Route& route = model.routes[popping_route_];
    const int own = std::min(count, route.claims);
    route.claims -= own;
    model.claimed -= own;
    count -= own;
  }
  popping_ = ModelId{};
  TakeBack(model, count);
}

// Requests that came back or went away by another door than the front.
void Nexus::CountAgain(const View& view) {
  for (std::size_t m = 0; m < models_.size(); ++m) {
    ModelRoutes& model = models_[m];
    if (!model.count_again || options_.front_ends == 0) continue;
    model.count_again = false;
    const int waiting = static_cast<int>(view.queues[m].size());
    TakeBack(model, model.claimed - waiting);
    for (int i = model.claimed; i < waiting; ++i) Send(model, i % options_.front_ends);
  }
}

std::optional<Decision> Nexus::RunTurn(const View& view, const Lane& lane, const Turn& turn,
                                       TimePoint now) {
  const ModelId m = turn.model;
  const RequestQueue& queue = view.queues[m.value()];
  int mine = static_cast<int>(queue.size());
  if (options_.front_ends > 0) {
    mine = std::min(mine, models_[m.value()].routes[turn.route].claims);
  }
  if (mine == 0) return std::nullopt;
  const ExitId exit = FinalExit(view.profile, m);
  const auto fits = [&](int head, int batch) {
    return now + view.profile.Latency(m, exit, batch, lane.lane_class) <= queue[head].deadline;
  };
  const int head = Head(queue, turn.batch, mine, fits);
  if (head > 0) {
    popping_ = ModelId{};
    return Drop{.model = m, .count = head, .reason = DropReason::kShed};
  }
  popping_ = m;
  popping_route_ = turn.route;
  const int most = options_.grow ? LargestBatch(view, m) : turn.batch;
  int batch = queue.Batchable(std::min(mine, most));
  while (batch > 0 && !fits(0, batch)) --batch;
  if (batch == 0) return std::nullopt;  // a quicker lane may still meet it
  return Dispatch{.model = m, .exit = exit, .batch = batch, .lane = lane.id};
}

Decision Nexus::Decide(const View& view, TimePoint now) {
  CountAgain(view);
  popping_ = ModelId{};
  if (const auto drop = lost_.Find(view, now)) return *drop;
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot()) continue;
    LaneTurns& mine = lanes_[lane.id.value()];
    for (std::size_t i = 0; i < mine.turns.size(); ++i) {
      const std::size_t at = (mine.next + i) % mine.turns.size();
      const auto decision = RunTurn(view, lane, mine.turns[at], now);
      if (!decision) continue;
      // After a drop it is still this model's turn.
      mine.next = std::holds_alternative<Dispatch>(*decision) ? (at + 1) % mine.turns.size() : at;
      return *decision;
    }
  }
  popping_ = ModelId{};
  return Wait{lost_.next()};
}

}  // namespace tactus
