#include "site/central_scheduler.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "site/worker_classes.h"

namespace tactus {
namespace {

constexpr std::uint32_t kNobody = static_cast<std::uint32_t>(-1);

bool SameShape(const WorkerModel& a, const WorkerModel& b) {
  return a.model.exit_count() == b.model.exit_count() && a.rows.max_batch == b.rows.max_batch &&
         a.rows.exits == b.rows.exits;
}

}  // namespace

std::vector<LaneSpec> SiteLanes(std::uint32_t count) {
  std::vector<LaneSpec> lanes(count);
  for (std::uint32_t i = 0; i < count; ++i) lanes[i].device = DeviceId{i};
  return lanes;
}

CentralScheduler::CentralScheduler(const Options& options, Term term, Policy& policy,
                                   SiteOutbox& outbox, Journal* journal)
    : options_(options),
      term_(term),
      outbox_(outbox),
      dispatcher_(options.dispatcher, SiteLanes(options.lanes), policy, *this, journal),
      workers_(options.workers),
      worker_of_(options.lanes, kNobody) {
  for (std::uint32_t i = options.lanes; i-- > 0;) free_lanes_.push_back(i);
  Deploy();
  for (std::uint32_t i = 0; i < options.lanes; ++i) dispatcher_.SetLaneOpen(LaneId{i}, false);
}

ModelId CentralScheduler::Find(ModelKey key) const {
  const auto at = ids_.find(key);
  return at == ids_.end() ? ModelId{} : at->second;
}

CentralScheduler::Worker* CentralScheduler::WorkerOf(PeerId peer) {
  for (std::optional<Worker>& worker : workers_) {
    if (worker && worker->peer == peer) return &*worker;
  }
  return nullptr;
}

bool CentralScheduler::ServedBesides(ModelId model, const std::string& worker) const {
  const std::string& name = models_[model.value()].first.model.name;
  for (const std::optional<Worker>& other : workers_) {
    if (!other || other->introduction.name == worker) continue;
    for (const WorkerModel& its : other->introduction.models) {
      if (its.model.name == name) return true;
    }
  }
  return false;
}

Status CentralScheduler::TakeModels(const WorkerIntroduction& worker) {
  for (const WorkerModel& model : worker.models) {
    const ModelId known = Find(KeyOf(model.model.name));
    if (!known.valid()) continue;
    const WorkerModel& first = models_[known.value()].first;
    if (first.model.name != model.model.name) {
      return InvalidArgument("models '" + first.model.name + "' and '" + model.model.name +
                             "' have one hash: give one of them another name");
    }
    if (!SameShape(first, model) && ServedBesides(known, worker.name)) {
      return InvalidArgument("worker '" + worker.name + "' has another model '" + model.model.name +
                             "' than the workers before it (exits or largest batch differ): give "
                             "all workers the same repository");
    }
  }
  for (const WorkerModel& model : worker.models) {
    const ModelKey key = KeyOf(model.model.name);
    if (const ModelId known = Find(key); known.valid()) {
      if (!ServedBesides(known, worker.name)) models_[known.value()].first = model;
      continue;
    }
    ids_[key] = ModelId{static_cast<ModelId::rep>(models_.size())};
    models_.push_back({key, model});
  }
  return {};
}

Status CentralScheduler::AddWorker(PeerId peer, const WorkerIntroduction& introduction,
                                   TimePoint now) {
  if (Worker* const known = WorkerOf(peer)) {
    if (Status taken = TakeModels(introduction); !taken) return taken;
    known->introduction.models = introduction.models;
    Deploy();
    PlaceUnplaced(now);
    outbox_.WorkersChanged();
    return {};
  }
  for (const std::optional<Worker>& worker : workers_) {
    if (worker && worker->introduction.name == introduction.name) {
      return InvalidArgument("two workers are '" + introduction.name +
                             "': start one of them with another --worker-name");
    }
  }
  const auto slot = std::find(workers_.begin(), workers_.end(), std::nullopt);
  if (slot == workers_.end()) {
    return Fail(ErrorCode::kResourceExhausted,
                "this scheduler has all the workers that it may have: raise --most-workers");
  }
  const auto lanes = static_cast<std::size_t>(std::max(1, introduction.lanes));
  if (lanes > free_lanes_.size()) {
    return Fail(ErrorCode::kResourceExhausted,
                "worker '" + introduction.name + "' has " + std::to_string(lanes) + " lanes, " +
                    std::to_string(free_lanes_.size()) + " are left: raise --most-lanes");
  }
  if (Status taken = TakeModels(introduction); !taken) return taken;
  now_ = now;
  slot->emplace(Worker{.peer = peer,
                       .lane_class = ClassOf(introduction),
                       .introduction = introduction,
                       .lanes = {},
                       .busy = {}});
  for (std::size_t i = 0; i < lanes; ++i) {
    const LaneId lane{free_lanes_.back()};
    free_lanes_.pop_back();
    worker_of_[lane.value()] = static_cast<std::uint32_t>(slot - workers_.begin());
    (*slot)->lanes.push_back(lane);
  }
  Deploy();
  for (std::size_t i = 0; i < lanes; ++i) {
    if (static_cast<int>(i) < introduction.busy) {
      (*slot)->busy.push_back((*slot)->lanes[i]);
    } else {
      OpenLane((*slot)->lanes[i]);
    }
  }
  PlaceUnplaced(now);
  outbox_.WorkersChanged();
  return {};
}

void CentralScheduler::OpenLane(LaneId lane) {
  if (!dispatcher_.view().lanes[lane.value()].open) dispatcher_.SetLaneOpen(lane, true);
}

LaneClass CentralScheduler::ClassOf(const WorkerIntroduction& worker) const {
  std::vector<ClassedWorker> others;
  for (const std::optional<Worker>& other : workers_) {
    if (other) others.push_back({other->lane_class, &other->introduction});
  }
  return ClassFor(worker, others);
}

// A class has the latencies of its first worker that serves the model. Where none does, it has
// those of the model's first worker of all: nothing runs there.
void CentralScheduler::Deploy() {
  auto served = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows;
  std::vector<bool> loaded(models_.size(), false);
  for (std::size_t m = 0; m < models_.size(); ++m) {
    const WorkerModel& first = models_[m].first;
    ProfileTable::ModelRows row{.exits = first.rows.exits,
                                .max_batch = first.rows.max_batch,
                                .latency = {},
                                .margin = first.rows.margin};
    std::vector<const WorkerModel*> of_class(options_.workers, nullptr);
    for (const std::optional<Worker>& worker : workers_) {
      for (std::size_t i = 0; worker && i < worker->introduction.models.size(); ++i) {
        const WorkerModel& its = worker->introduction.models[i];
        if (its.model.name != first.model.name) continue;
        const WorkerModel*& known = of_class[worker->lane_class.value()];
        if (known == nullptr) known = &its;
        loaded[m] = true;
      }
    }
    for (const WorkerModel* of : of_class) {
      const std::vector<Duration>& latency = (of != nullptr ? *of : first).rows.latency;
      row.latency.insert(row.latency.end(), latency.begin(), latency.end());
    }
    rows.push_back(std::move(row));
    served->models.push_back(first.model);
    served->models.back().loaded = loaded[m];
  }
  served->profile = ProfileTable(static_cast<int>(options_.workers), rows);
  auto plan = std::make_shared<Plan>();
  plan->epoch = ++plans_;
  for (std::uint32_t i = 0; i < options_.lanes; ++i) {
    LanePlan lane;
    lane.spec.device = DeviceId{i};
    if (worker_of_[i] != kNobody) {
      lane.spec.lane_class = workers_[worker_of_[i]]->lane_class;
      for (const WorkerModel& model : workers_[worker_of_[i]]->introduction.models) {
        lane.entries.push_back({.model = Find(KeyOf(model.model.name))});
      }
    }
    plan->lanes.push_back(std::move(lane));
  }
  dispatcher_.Configure(std::move(served));
  for (std::uint32_t i = 0; i < options_.lanes; ++i) {
    const Lane& lane = dispatcher_.view().lanes[i];
    if (worker_of_[i] == kNobody) continue;
    const LaneClass its = workers_[worker_of_[i]]->lane_class;
    if (lane.lane_class != its) dispatcher_.SetLaneShare(LaneId{i}, its, 1);
  }
  dispatcher_.Adopt(std::move(plan));
}

void CentralScheduler::RemoveWorker(Worker& worker, TimePoint now) {
  for (const LaneId lane : worker.lanes) {
    std::vector<std::uint64_t> batches;
    for (const auto& [batch, flight] : flights_) {
      if (flight.lane == lane) batches.push_back(batch);
    }
    std::sort(batches.begin(), batches.end());
    for (const std::uint64_t batch : batches) EndFlight(batch, BatchStatus::kFailed, now);
    if (dispatcher_.view().lanes[lane.value()].open) dispatcher_.SetLaneOpen(lane, false);
    std::erase_if(shut_, [&](const Shut& shut) { return shut.lane == lane; });
    worker_of_[lane.value()] = kNobody;
    free_lanes_.push_back(lane.value());
  }
  std::sort(free_lanes_.rbegin(), free_lanes_.rend());
}

void CentralScheduler::Remove(PeerId peer, TimePoint now) {
  now_ = now;
  for (std::optional<Worker>& worker : workers_) {
    if (!worker || worker->peer != peer) continue;
    RemoveWorker(*worker, now);
    worker.reset();
    Deploy();
    outbox_.WorkersChanged();
    return;
  }
  std::erase_if(unplaced_, [&](const auto& each) { return each.first.peer == peer; });
  std::vector<std::uint32_t> gone;
  for (const auto& [of, place] : waiting_) {
    if (of.peer == peer) gone.push_back(place);
  }
  std::sort(gone.begin(), gone.end(), [&](auto a, auto b) { return slab_[a].id < slab_[b].id; });
  for (const std::uint32_t place : gone) dispatcher_.Cancel(slab_[place].model, slab_[place].id);
}

std::uint32_t CentralScheduler::ShapeOf(PeerId front_end, std::uint32_t shape) {
  constexpr std::size_t kMost = 65'536;
  if (shape == 0) return 0;
  if (shapes_.size() >= kMost) shapes_.clear();
  const auto [at, fresh] = shapes_.try_emplace({front_end, RequestId{shape}}, next_shape_);
  if (fresh) ++next_shape_;
  return at->second;
}

void CentralScheduler::KeepUnplaced(PeerId front_end, const Offer& offer) {
  if (unplaced_.size() >= options_.dispatcher.queue_capacity) {
    std::erase_if(unplaced_, [&](const auto& each) { return each.second.deadline < now_; });
  }
  if (unplaced_.size() >= options_.dispatcher.queue_capacity) {
    return outbox_.Send(front_end, Refusal{offer.request, offer.model, DropReason::kQueueFull});
  }
  unplaced_[{front_end, offer.request}] = offer;
}

void CentralScheduler::PlaceUnplaced(TimePoint now) {
  std::vector<std::pair<PeerRequest, Offer>> offers(unplaced_.begin(), unplaced_.end());
  unplaced_.clear();
  std::sort(offers.begin(), offers.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.deadline, a.first.peer, a.first.request) <
           std::tie(b.second.deadline, b.first.peer, b.first.request);
  });
  for (const auto& [of, offer] : offers) OnOffer(of.peer, offer, now);
}

void CentralScheduler::OnOffer(PeerId front_end, const Offer& offer, TimePoint now) {
  now_ = now;
  const PeerRequest key{front_end, offer.request};
  if (offer.withdrawn) return Withdraw(key);
  if (waiting_.contains(key)) return;
  const ModelId model = Find(offer.model);
  if (!model.valid() || !dispatcher_.view().models[model.value()].loaded) {
    return KeepUnplaced(front_end, offer);
  }
  std::uint32_t place = 0;
  if (free_slab_.empty()) {
    place = static_cast<std::uint32_t>(slab_.size());
    slab_.emplace_back();
  } else {
    place = free_slab_.back();
    free_slab_.pop_back();
  }
  const RequestId id{next_request_++};
  slab_[place] = {front_end, offer.request, model, id, offer.shape};
  waiting_[key] = place;
  dispatcher_.Arrive(model, {.id = id,
                             .arrival = now,
                             .deadline = offer.deadline,
                             .payload = place,
                             .shape = ShapeOf(front_end, offer.shape),
                             .priority = offer.priority});
}

void CentralScheduler::Withdraw(const PeerRequest& request) {
  unplaced_.erase(request);
  const auto at = waiting_.find(request);
  if (at == waiting_.end()) return;
  const Waiting waiting = slab_[at->second];
  dispatcher_.Cancel(waiting.model, waiting.id);
}

void CentralScheduler::Reject(ModelId model, const Request& request, DropReason reason) {
  const auto place = static_cast<std::uint32_t>(request.payload);
  const Waiting waiting = slab_[place];
  // A request of a batch that was granted is no longer in the books.
  if (waiting.id != request.id) return;
  waiting_.erase({waiting.front_end, waiting.request});
  slab_[place].id = RequestId{};
  free_slab_.push_back(place);
  if (reason == DropReason::kCancelled) return;
  if (reason == DropReason::kUnloaded) {
    return KeepUnplaced(waiting.front_end, {.request = waiting.request,
                                            .model = models_[model.value()].key,
                                            .deadline = request.deadline,
                                            .shape = waiting.shape,
                                            .priority = request.priority});
  }
  outbox_.Send(waiting.front_end, Refusal{waiting.request, models_[model.value()].key, reason});
}

void CentralScheduler::Launch(const Batch& batch) {
  std::map<PeerId, Grant> grants;
  for (const Request& request : batch.requests) {
    const auto place = static_cast<std::uint32_t>(request.payload);
    Waiting& waiting = slab_[place];
    grants[waiting.front_end].requests.push_back(waiting.request);
    waiting_.erase({waiting.front_end, waiting.request});
    waiting.id = RequestId{};
    free_slab_.push_back(place);
  }
  const auto rows = static_cast<std::uint32_t>(batch.requests.size());
  const TimePoint given_up =
      batch.expected_end + std::max(options_.unreported, 4 * (batch.expected_end - batch.start));
  flights_[batch.id.value()] = {batch.lane, rows, batch.start, given_up};
  next_given_up_ = std::min(next_given_up_, given_up);
  for (auto& [front_end, grant] : grants) {
    grant.key = {term_, batch.id.value()};
    grant.model = models_[batch.model.value()].key;
    grant.exit = batch.exit;
    grant.worker = worker_of_[batch.lane.value()];
    grant.rows = rows;
    outbox_.Send(front_end, grant);
  }
}

void CentralScheduler::EndFlight(std::uint64_t batch, BatchStatus status, TimePoint now) {
  const auto at = flights_.find(batch);
  if (at == flights_.end()) return;
  const Flight flight = at->second;
  flights_.erase(at);
  dispatcher_.Finish(flight.lane, BatchId{batch},
                     {.started = flight.granted, .ended = now, .status = status}, now);
}

void CentralScheduler::OnVoid(const VoidRows& rows, TimePoint now) {
  now_ = now;
  if (rows.key.term != term_) return;
  const auto at = flights_.find(rows.key.batch);
  if (at == flights_.end()) return;
  Flight& flight = at->second;
  const LaneId lane = flight.lane;
  flight.rows -= std::min(flight.rows, rows.rows);
  if (flight.rows == 0) EndFlight(rows.key.batch, BatchStatus::kFailed, now);
  if (!rows.unreachable || !dispatcher_.view().lanes[lane.value()].open) return;
  dispatcher_.SetLaneOpen(lane, false);
  shut_.push_back({lane, now + options_.unreachable});
}

void CentralScheduler::OnDone(PeerId peer, const BatchDone& done, TimePoint now) {
  now_ = now;
  Worker* const worker = WorkerOf(peer);
  if (worker == nullptr) return;
  const auto at = done.key.term == term_ ? flights_.find(done.key.batch) : flights_.end();
  if (at == flights_.end()) {  // of an earlier leader, or granted before the worker joined again
    if (worker->busy.empty()) return;
    OpenLane(worker->busy.back());
    worker->busy.pop_back();
    return;
  }
  const std::uint32_t slot = worker_of_[at->second.lane.value()];
  if (slot == kNobody || &*workers_[slot] != worker) return;
  // How long a granted batch takes is what policies count on: with the way there and back.
  EndFlight(done.key.batch,
            done.status == BatchStatus::kOk ? BatchStatus::kOk : BatchStatus::kFailed, now);
}

TimePoint CentralScheduler::Step(TimePoint now) {
  now_ = now;
  if (next_given_up_ <= now) {
    next_given_up_ = kNever;
    std::vector<std::uint64_t> given_up;
    for (const auto& [batch, flight] : flights_) {
      if (flight.given_up <= now)
        given_up.push_back(batch);
      else
        next_given_up_ = std::min(next_given_up_, flight.given_up);
    }
    std::sort(given_up.begin(), given_up.end());
    for (const std::uint64_t batch : given_up) EndFlight(batch, BatchStatus::kFailed, now);
    if (!given_up.empty()) {
      outbox_.Say("no worker reported " + std::to_string(given_up.size()) +
                  " granted batches: their lanes are granted again");
    }
  }
  TimePoint next = kNever;
  std::erase_if(shut_, [&](const Shut& shut) {
    if (shut.until > now) {
      next = std::min(next, shut.until);
      return false;
    }
    OpenLane(shut.lane);
    return true;
  });
  next = std::min(next, dispatcher_.Step(now));
  return std::min(next, next_given_up_);
}

std::vector<WorkerPlace> CentralScheduler::workers() const {
  std::vector<WorkerPlace> places;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i]) continue;
    places.push_back({i, workers_[i]->introduction.name, workers_[i]->introduction.address});
  }
  return places;
}

std::vector<WorkerModel> CentralScheduler::models() const {
  std::vector<WorkerModel> models;
  for (std::size_t m = 0; m < models_.size(); ++m) {
    if (!dispatcher_.view().models[m].loaded) continue;
    models.push_back(models_[m].first);
    models.back().spec.digest = DigestOf(models_[m].first.model.name);
  }
  return models;
}

std::string CentralScheduler::DigestOf(const std::string& model) const {
  std::optional<std::string> common;
  for (const std::optional<Worker>& worker : workers_) {
    if (!worker) continue;
    for (const WorkerModel& its : worker->introduction.models) {
      if (its.model.name != model) continue;
      if (common && *common != its.spec.digest) return "";
      common = its.spec.digest;
    }
  }
  return common.value_or("");
}

}  // namespace tactus
