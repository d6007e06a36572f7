#include "site/ordered_policy.h"

#include <algorithm>
#include <utility>

namespace tactus {

OrderedPolicy::OrderedPolicy(GrantedBatches& batches, DonePort& port, std::unique_ptr<Policy> own,
                             Duration patience)
    : Policy({.name = "ordered"}),
      batches_(batches),
      port_(port),
      own_(std::move(own)),
      own_learner_(LearnerOf(*own_)),
      patience_(patience) {}

void OrderedPolicy::Prepare(const View& view) {
  own_->Prepare(view);
  left_ = true;
}

void OrderedPolicy::OnArrive(ModelId m, const Request& request) {
  own_->OnArrive(m, request);
  if (!GrantedBatches::IsGroup(request.shape)) return;
  const auto [at, fresh] = gathering_.try_emplace(request.shape);
  Gathering& batch = at->second;
  if (fresh) {
    if (const auto known = batches_.Find(request.shape)) batch.batch = *known;
    batch.model = m;
    batch.group = request.shape;
    batch.since = request.arrival;
  }
  ++batch.came;
}

void OrderedPolicy::OnPopFront(ModelId m, int count) {
  own_->OnPopFront(m, count);
  if (!launching_) left_ = true;
}

void OrderedPolicy::OnQueueChange(ModelId m) {
  own_->OnQueueChange(m);
  left_ = true;
}

void OrderedPolicy::OnLaneChange(const Lane& lane) {
  own_->OnLaneChange(lane);
  if (!launching_ || lane.batches.empty()) return;
  running_[lane.batches[lane.batches.size() - 1].id.value()] = *std::exchange(launching_, {});
  port_.SetRunning(running_.size());
}

void OrderedPolicy::OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                                TimePoint now) {
  if (own_learner_ != nullptr) own_learner_->OnBatchDone(lane, batch, report, now);
  const auto at = running_.find(batch.id.value());
  if (at == running_.end()) return;
  const Gathering ended = at->second;
  running_.erase(at);
  port_.SetRunning(running_.size());
  End(ended.group, ended.batch.key, report.ended - report.started, report.status);
}

void OrderedPolicy::End(std::uint32_t group, const BatchKey& key, Duration took,
                        BatchStatus status) {
  gathering_.erase(group);
  batches_.End(group, key);
  port_.Send(BatchDone{key, took, status});
}

void OrderedPolicy::EndVoid(const View& view) {
  left_ = false;
  std::vector<Gathering> gone;
  for (const auto& [group, batch] : gathering_) {
    const RequestQueue& queue = view.queues[batch.model.value()];
    bool here = false;
    for (std::size_t i = 0; i < queue.size() && !here; ++i) here = queue[i].shape == group;
    if (!here) gone.push_back(batch);
  }
  for (const Gathering& batch : gone) {
    End(batch.group, batch.batch.key, Duration{}, BatchStatus::kAborted);
  }
}

std::optional<Decision> OrderedPolicy::RunHead(const View& view, ModelId m, TimePoint now,
                                               TimePoint& again) {
  const RequestQueue& queue = view.queues[m.value()];
  const Model& model = view.models[m.value()];
  const auto at = gathering_.find(queue.front().shape);
  const int count = queue.Batchable(model.max_batch);
  if (at != gathering_.end()) {
    const Gathering& batch = at->second;
    const TimePoint ready = batch.since + patience_;
    const bool whole = batch.came >= batch.batch.rows || count == model.max_batch;
    if (!whole && now < ready) {
      again = std::min(again, ready);
      return std::nullopt;
    }
  }
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(m)) continue;
    const int deepest = model.exit_count() - 1;
    int exit = deepest;
    if (at != gathering_.end()) {
      exit = std::min(static_cast<int>(at->second.batch.exit.value()), deepest);
      launching_ = at->second;
      gathering_.erase(at);
    }
    return Dispatch{m, ExitId{static_cast<ExitId::rep>(exit)}, count, lane.id};
  }
  return std::nullopt;
}

Decision OrderedPolicy::Decide(const View& view, TimePoint now) {
  if (launching_) {  // its rows expired instead, or some of them
    const Gathering batch = *std::exchange(launching_, {});
    gathering_[batch.group] = batch;
    left_ = true;
  }
  if (left_ && !gathering_.empty()) EndVoid(view);
  left_ = false;
  if (gathering_.empty()) return own_->Decide(view, now);
  TimePoint again = kNever;
  for (ModelId::rep m = 0; m < view.models.size(); ++m) {
    if (view.queues[m].empty()) continue;
    if (const auto decision = RunHead(view, ModelId{m}, now, again)) return *decision;
  }
  return Wait{again};
}

}  // namespace tactus
