#include "policies/planned/planned.h"

#include <algorithm>

#include "core/feasible.h"
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

void Planned::TakePlan(const View& view) {
  models_.assign(view.models.size(), ModelState{});
  lanes_.assign(view.lanes.size(), PlannedLane{});
  ready_.Resize(view.lanes.size());
  windows_.Resize(view.lanes.size());
  lost_.Resize(view.models.size());
  touched_.clear();
  touched_.reserve(view.models.size());
  seen_.Prepare(view.profile);
  popping_ = ModelId{};
  for (const Lane& lane : view.lanes) {
    const std::size_t i = lane.id.value();
    lanes_[i].open = lane.open;
    if (view.plan == nullptr) {
      for (ModelId::rep m = 0; m < view.models.size(); ++m) {
        AddTurn(view, lane, {.model = ModelId{m}}, Seconds(1));
      }
    } else if (i < view.plan->lanes.size()) {
      const LanePlan& planned = view.plan->lanes[i];
      for (const PlanEntry& entry : planned.entries) AddTurn(view, lane, entry, planned.cycle);
    }
    OnLaneChange(lane);
  }
  for (ModelId::rep m = 0; m < models_.size(); ++m) {
    ModelState& model = models_[m];
    model.Start(options_.front_ends);
    if (!view.models[m].loaded) continue;
    // Requests of a model without a lane wait for a plan that has one, while any lane could do.
    if (model.routes.empty()) model.quickest = QuickestService(view, ModelId{m});
    OnQueueChange(ModelId{m});
  }
}

void Planned::AddTurn(const View& view, const Lane& lane, const PlanEntry& entry, Duration cycle) {
  const std::size_t m = entry.model.value();
  if (m >= view.models.size() || !view.models[m].loaded || !lane.serves.contains(entry.model)) {
    return;
  }
  ModelState& model = models_[m];
  const Duration alone =
      view.profile.Latency(entry.model, FinalExit(view.profile, entry.model), 1, lane.lane_class);
  model.quickest = model.routes.empty() ? alone : std::min(model.quickest, alone);
  const int batch = std::clamp(entry.batch, 1, LargestBatch(view, entry.model));
  const double weight = batch / ToSeconds(std::max(cycle, Nanos(1)));
  lanes_[lane.id.value()].turns.push_back({.model = entry.model,
                                           .batch = batch,
                                           .route = static_cast<std::uint32_t>(model.routes.size()),
                                           .offset = entry.offset,
                                           .length = entry.length});
  model.routes.push_back({.lane = lane.id, .weight = weight, .open = lane.open});
}

void Planned::OnArrive(ModelId m, const Request& request) {
  CountExamined();
  Touch(m);
  ModelState& model = models_[m.value()];
  if (model.routes.empty() || options_.front_ends == 0) return;
  const LaneId lane = model.routes[model.Send(Scatter(request.id.value()) % front_ends())].lane;
  if (lanes_[lane.value()].free) ready_.Insert(lane.value());
}

void Planned::OnPopFront(ModelId m, int count) {
  ModelState& model = models_[m.value()];
  popping_ == m ? model.Take(popping_route_, count) : model.TakeBack(count);
  popping_ = ModelId{};
  Touch(m);
}

void Planned::OnQueueChange(ModelId m) {
  models_[m.value()].count_again = true;
  Touch(m);
}

void Planned::OnLaneChange(const Lane& lane) {
  const std::uint32_t i = lane.id.value();
  if (lanes_[i].open != lane.open) SetOpen(lanes_[i], lane.open);
  lanes_[i].free = lane.HasFreeSlot() && !lanes_[i].turns.empty();
  lanes_[i].free ? ready_.Insert(i) : ready_.Erase(i);
}

void Planned::SetOpen(PlannedLane& lane, bool open) {
  lane.open = open;
  for (const LaneTurns::Turn& turn : lane.turns) {
    if (models_[turn.model.value()].SetOpen(turn.route, open)) OnQueueChange(turn.model);
  }
}

void Planned::Touch(ModelId m) {
  if (models_[m.value()].touched) return;
  models_[m.value()].touched = true;
  touched_.push_back(m);
}

// As TakePlan finds it.
void Planned::SetQuickest(const View& view, ModelId m) {
  ModelState& model = models_[m.value()];
  if (!view.models[m.value()].loaded) return;
  if (model.routes.empty()) {
    model.quickest = QuickestService(view, m);
    return;
  }
  model.quickest = Duration::max();
  for (const ModelRoutes::Route& route : model.routes) {
    const LaneClass c = view.lanes[route.lane.value()].lane_class;
    model.quickest =
        std::min(model.quickest, view.profile.Latency(m, FinalExit(view.profile, m), 1, c));
  }
}

void Planned::Refresh(const View& view) {
  seen_.Take(view.profile, [&](ModelId m) {
    SetQuickest(view, m);
    Touch(m);
  });
  for (const ModelId m : touched_) {
    ModelState& model = models_[m.value()];
    const RequestQueue& queue = view.queues[m.value()];
    model.touched = false;
    if (model.count_again && !model.routes.empty() && options_.front_ends > 0) {
      const int waiting = static_cast<int>(queue.size());
      model.TakeBack(model.claimed - waiting);
      while (model.claimed < waiting) model.Send(model.claimed % front_ends());
    }
    model.count_again = false;
    // Another head, or none: lanes that it held up may go on.
    for (const ModelRoutes::Route& route : model.routes) {
      if (Claims(route) > 0 && lanes_[route.lane.value()].free) ready_.Insert(route.lane.value());
    }
    if (queue.empty()) {
      lost_.Erase(m.value());
    } else if (model.quickest == Duration::max()) {
      lost_.Put(m.value(), TimePoint{Duration::min()});  // no lane serves it
    } else {
      lost_.Put(m.value(), queue.front().deadline - model.quickest);
    }
  }
  touched_.clear();
}

std::optional<Decision> Planned::Run(const View& view, const Lane& lane, TimePoint now) {
  const auto mine = [&](const LaneTurns::Turn& turn) {
    return Claims(models_[turn.model.value()].routes[turn.route]);
  };
  const auto room = [&](const LaneTurns::Turn& turn) { return RoomOf(view, lane, turn, now); };
  PlannedLane& here = lanes_[lane.id.value()];
  here.look = here.held = kNever;
  if (options_.windows == PlannedOptions::Windows::kDefer) {
    for (const LaneTurns::Turn& turn : here.turns) {
      if (HasWindow(view, lane, turn)) RoomOf(view, lane, turn, now);
    }
  }
  // Alone on a lane nobody else waits for their turn.
  const bool alone = options_.grow_alone && view.plan != nullptr && here.turns.size() == 1;
  const auto heads = [alone](const RequestQueue& queue, int planned, int own, auto fits) {
    return alone && own < planned ? MostServedFrom(planned, own, fits)
                                  : WindowDrop(static_cast<int>(queue.size()), planned, own, fits);
  };
  const auto taken = here.Take(view, lane, options_.grow || alone, now, mine, room, heads);
  if (!taken) {
    if (here.look != kNever) windows_.Put(lane.id.value(), here.look);
    return std::nullopt;
  }
  if (std::holds_alternative<Dispatch>(taken->decision)) {
    popping_ = taken->turn.model;
    popping_route_ = taken->turn.route;
  }
  return taken->decision;
}

// A turn whose window is not now, or has no room left for its batch, comes again when the next one
// opens, if anything waits for it; one that waits in its window, when it must start. Those without
// a window have the lane until then.
Duration Planned::RoomOf(const View& view, const Lane& lane, const LaneTurns::Turn& turn,
                         TimePoint now) {
  PlannedLane& here = lanes_[lane.id.value()];
  if (!HasWindow(view, lane, turn)) {
    return here.held == kNever ? LaneTurns::kAnyRoom : here.held - now;
  }
  if (models_[turn.model.value()].routes[turn.route].claims <= 0) return Duration{};
  const Duration cycle = view.plan->lanes[lane.id.value()].cycle;
  // Since the last opening; before the first one of all it is negative.
  Duration since = (now - *adopted_ - turn.offset) % cycle;
  if (since < Duration{}) since += cycle;
  here.look = std::min(here.look, now - since + cycle);
  if (now - since < *adopted_) return Duration{};
  const Duration room = turn.length - since;
  if (options_.windows != PlannedOptions::Windows::kDefer || room <= Duration{}) return room;
  const TimePoint until = WaitsUntil(view, lane, turn, now, now + room);
  if (until != kNever) here.held = std::min(here.held, until);
  if (until == kNever || until == now) return room;
  here.look = std::min(here.look, until);
  return Duration{};
}

TimePoint Planned::WaitsUntil(const View& view, const Lane& lane, const LaneTurns::Turn& turn,
                              TimePoint now, TimePoint end) const {
  const RequestQueue& queue = view.queues[turn.model.value()];
  if (queue.empty()) return kNever;
  const int waiting = std::min(models_[turn.model.value()].routes[turn.route].claims,
                               static_cast<int>(queue.size()));
  const ExitId exit = FinalExit(view.profile, turn.model);
  const auto takes = [&](int batch) {
    return view.profile.Latency(turn.model, exit, batch, lane.lane_class);
  };
  const TimePoint due = std::min(end, queue.front().deadline);
  if (now + takes(1) > due) return kNever;
  return waiting >= turn.batch ? now : std::max(now, due - takes(waiting + 1));
}

Decision Planned::Decide(const View& view, TimePoint now) {
  if (!adopted_) adopted_ = now;
  Refresh(view);
  popping_ = ModelId{};
  while (!windows_.empty() && windows_.top_key() <= now) {
    const std::uint32_t lane = windows_.top();
    windows_.Erase(lane);
    if (lanes_[lane].free) ready_.Insert(lane);
  }
  if (!lost_.empty() && lost_.top_key() < now) {
    return Drop{.model = ModelId{lost_.top()}, .count = 1, .reason = DropReason::kExpired};
  }
  for (std::uint32_t i; (i = ready_.Least()) != IdSet::kNone;) {
    if (const auto decision = Run(view, view.lanes[i], now)) return *decision;
    ready_.Erase(i);
  }
  const TimePoint lost = lost_.empty() ? kNever : lost_.top_key() + Nanos(1);
  return Wait{windows_.empty() ? lost : std::min(lost, windows_.top_key())};
}

}  // namespace tactus
