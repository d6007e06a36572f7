#include "site/granted_policy.h"

#include <algorithm>
#include <utility>

namespace tactus {

void GrantedPolicy::Prepare(const View& view) {
  waiting_.resize(view.models.size());
  ids_.clear();
  for (ModelId::rep m = 0; m < view.models.size(); ++m) {
    waiting_[m].key = KeyOf(view.models[m].name);
    if (view.models[m].loaded) ids_[waiting_[m].key] = ModelId{m};
    OnQueueChange(ModelId{m});
  }
}

void GrantedPolicy::OfferOne(ModelId m, const Request& request) {
  Waiting& waiting = waiting_[m.value()];
  waiting.marks[request.id.value()] = Mark{.seen = round_};
  port_.Send(Offer{request.id, waiting.key, request.deadline, request.shape, request.priority});
}

void GrantedPolicy::OnArrive(ModelId m, const Request& request) {
  if (offering_) OfferOne(m, request);
}

void GrantedPolicy::OnPopFront(ModelId m, int) {
  if (!launching_) OnQueueChange(m);  // they expired, or were given up
}

void GrantedPolicy::OnQueueChange(ModelId m) {
  Waiting& waiting = waiting_[m.value()];
  if (waiting.changed) return;
  waiting.changed = true;
  changed_.push_back(m);
}

void GrantedPolicy::OnLaneChange(const Lane& lane) {
  if (!launching_ || lane.id.value() != launching_->worker) return;
  const BatchId batch = lane.batches[lane.batches.size() - 1].id;
  book_.SetLaunched(batch, *launching_);
  running_[batch.value()] = launching_->key;
  launching_.reset();
}

void GrantedPolicy::OnBatchDone(LaneId, const RunningBatch& batch, const BatchReport& report,
                                TimePoint) {
  const auto at = running_.find(batch.id.value());
  if (at == running_.end()) return;
  if (report.status == BatchStatus::kLost) {
    port_.Send(VoidRows{at->second, static_cast<std::uint32_t>(batch.batch), true});
  }
  running_.erase(at);
}

void GrantedPolicy::Forget(Waiting& waiting, Marks::iterator at) {
  if (at->second.refused) {
    --waiting.refused;
  } else {
    port_.Send(Offer{.request = RequestId{at->first}, .model = waiting.key, .withdrawn = true});
  }
  waiting.marks.erase(at);
}

void GrantedPolicy::Resync(const View& view, ModelId m) {
  Waiting& waiting = waiting_[m.value()];
  waiting.changed = false;
  if (!offering_) return;
  ++round_;
  const RequestQueue& queue = view.queues[m.value()];
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto at = waiting.marks.find(queue[i].id.value());
    if (at == waiting.marks.end()) {
      OfferOne(m, queue[i]);
    } else {
      at->second.seen = round_;
    }
  }
  if (waiting.marks.size() == queue.size()) return;
  for (auto at = waiting.marks.begin(); at != waiting.marks.end();) {
    const auto here = at++;
    if (here->second.seen != round_) Forget(waiting, here);
  }
}

void GrantedPolicy::TakeNotes(const View& view) {
  GrantBook::Notes notes = book_.TakeNotes();
  if (notes.lead != 0) {
    grants_.clear();
    offering_ = true;
    for (ModelId::rep m = 0; m < waiting_.size(); ++m) {
      waiting_[m].marks.clear();
      waiting_[m].refused = 0;
      Resync(view, ModelId{m});
    }
    changed_.clear();
  }
  for (Grant& grant : notes.grants) grants_.push_back(std::move(grant));
  for (const Refusal& refusal : notes.refusals) {
    const auto model = ids_.find(refusal.model);
    if (model == ids_.end()) continue;
    Waiting& waiting = waiting_[model->second.value()];
    const auto at = waiting.marks.find(refusal.request.value());
    if (at == waiting.marks.end() || at->second.refused) continue;
    at->second = {.refused = true, .reason = refusal.reason, .seen = at->second.seen};
    ++waiting.refused;
  }
}

// The first `count` run now; the grant named others, perhaps.
void GrantedPolicy::SettleHeads(const View& view, ModelId m, const Grant& grant, int count) {
  Waiting& waiting = waiting_[m.value()];
  const RequestQueue& queue = view.queues[m.value()];
  std::vector<std::uint64_t> named;
  for (const RequestId request : grant.requests) named.push_back(request.value());
  std::sort(named.begin(), named.end());
  for (int i = 0; i < count; ++i) {
    const auto at = waiting.marks.find(queue[i].id.value());
    if (at == waiting.marks.end()) continue;
    if (std::binary_search(named.begin(), named.end(), at->first)) {
      if (at->second.refused) --waiting.refused;
      waiting.marks.erase(at);
    } else {
      Forget(waiting, at);
    }
  }
  // What was named and has a mark still waits behind them: the scheduler took it for granted.
  for (const std::uint64_t id : named) {
    const auto at = waiting.marks.find(id);
    if (at == waiting.marks.end()) continue;
    if (at->second.refused) --waiting.refused;
    waiting.marks.erase(at);
    OnQueueChange(m);
  }
}

void GrantedPolicy::Void(const View& view, const Grant& grant, std::uint32_t rows) {
  const bool reachable = grant.worker < view.lanes.size() && view.lanes[grant.worker].open;
  port_.Send(VoidRows{grant.key, rows, !reachable});
  const auto model = ids_.find(grant.model);
  if (model == ids_.end()) return;
  if (rows == grant.requests.size()) SettleHeads(view, model->second, grant, 0);
}

std::optional<Decision> GrantedPolicy::CarryOut(const View& view, const Grant& grant) {
  const auto granted = static_cast<std::uint32_t>(grant.requests.size());
  const auto model = ids_.find(grant.model);
  const bool lane = grant.worker < view.lanes.size() && view.lanes[grant.worker].HasFreeSlot();
  int count = 0;
  if (model != ids_.end() && lane) {
    const int most = view.models[model->second.value()].max_batch;
    count = view.queues[model->second.value()].Batchable(std::min(static_cast<int>(granted), most));
  }
  if (count < static_cast<int>(granted))
    Void(view, grant, granted - static_cast<std::uint32_t>(count));
  if (count == 0) return std::nullopt;
  const ModelId m = model->second;
  SettleHeads(view, m, grant, count);
  const auto exits = static_cast<ExitId::rep>(view.models[m.value()].exit_count());
  const ExitId exit{std::min(grant.exit.value(), exits - 1)};
  launching_ = GrantBook::Launched{grant.key, grant.worker, exit, grant.rows};
  return Dispatch{m, exit, count, LaneId{grant.worker}};
}

Decision GrantedPolicy::Decide(const View& view, TimePoint) {
  if (book_.HasNotes()) TakeNotes(view);
  // Before any grant: the scheduler granted places to those behind them.
  for (ModelId::rep m = 0; m < waiting_.size(); ++m) {
    if (waiting_[m].refused == 0 || view.queues[m].empty()) continue;
    const auto at = waiting_[m].marks.find(view.queues[m].front().id.value());
    if (at == waiting_[m].marks.end() || !at->second.refused) continue;
    return Drop{ModelId{m}, 1, at->second.reason};
  }
  while (!grants_.empty()) {
    const Grant grant = std::move(grants_.front());
    grants_.pop_front();
    if (const auto decision = CarryOut(view, grant)) return *decision;
  }
  for (std::size_t i = 0; i < changed_.size(); ++i) Resync(view, changed_[i]);
  changed_.clear();
  return Wait{};
}

}  // namespace tactus
