// A random life of a dispatcher: every event it can meet, in any order, beside a plain account of
// what must be true. The account is kept from what the outbox is told alone.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "chance.h"
#include "core/feasible.h"
#include "dispatch/dispatcher.h"
#include "planners/nexus/squishy.h"
#include "random_policy.h"

namespace tactus {

// Any legal decision, with no regard for sense: what the dispatcher must survive.
class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(Chance& chance) : Policy({.name = "random"}), chance_(chance) {}
  Decision Decide(const View& view, TimePoint now) override {
    const std::uint64_t what = chance_.Below(8);
    const ModelId m{static_cast<ModelId::rep>(chance_.Below(view.queues.size()))};
    const RequestQueue& queue = view.queues[m.value()];
    if (what < 4 && !queue.empty()) {
      if (const Lane* lane = FirstFreeLane(view.lanes, m)) {
        const int limit = 1 + static_cast<int>(chance_.Below(LargestBatch(view, m)));
        const ExitId exit{static_cast<ExitId::rep>(chance_.Below(view.profile.exits(m)))};
        return Dispatch{m, exit, queue.Batchable(limit), lane->id};
      }
    }
    if (what == 4 && !queue.empty()) {
      return Drop{.model = m, .count = static_cast<int>(1 + chance_.Below(queue.size()))};
    }
    if (what == 5) {
      const Lane& lane = view.lanes[chance_.Below(view.lanes.size())];
      if (!lane.running().empty()) {
        const BatchId batch = lane.running()[chance_.Below(lane.running().size())].id;
        if (preempted_.insert(batch).second) return Preempt{.lane = lane.id, .batch = batch};
      }
    }
    return Wait{.until = chance_.Below(2) == 0 ? kNever : now + Micros(1 + chance_.Below(5000))};
  }

 private:
  Chance& chance_;
  std::set<BatchId> preempted_;
};

constexpr const char* kRandomPolicy = "random";

class Life final : public Outbox, public Journal {
 public:
  // `policy`: a policy's text, or kRandomPolicy. The same chances and policy lead the same life.
  Life(Chance& chance, const std::string& policy)
      : chance_(chance), never_late_(NeverLate(policy)) {
    if (policy == kRandomPolicy) {
      policy_ = std::make_unique<RandomPolicy>(chance);
    } else {
      policy_ = *MakePolicy(policy);
    }
    options_.queue_capacity = 1 + chance_.Below(60);
    options_.expiry = static_cast<Expiry>(chance_.Below(3));
    classes_ = chance_.Whole(1, 3);
    lanes_.resize(1 + chance_.Below(4));
    for (LaneSpec& lane : lanes_) {
      lane.slots = chance_.Whole(1, 3);
      lane.lane_class = LaneClass{static_cast<LaneClass::rep>(chance_.Below(classes_))};
    }
    // The first lane is for all models, so that none is unmeetable.
    for (std::size_t i = 1; i < lanes_.size(); ++i) {
      if (!chance_.OneIn(3)) continue;
      lanes_[i].serves = ModelSet::None(kPinned);
      for (ModelId::rep m = 0; m < kPinned; ++m) {
        if (chance_.OneIn(2)) lanes_[i].serves.Insert(ModelId{m});
      }
    }
    open_.assign(lanes_.size(), true);
    dispatcher_ = std::make_unique<Dispatcher>(options_, lanes_, *policy_, *this, this);
    Redeploy(1 + chance_.Below(5));
  }

  void Run(int events) {
    TimePoint wake = kNever;
    for (int i = 0; i < events && !chance_.exhausted(); ++i) {
      Advance(wake);
      for (std::uint64_t together = 1 + chance_.Below(3); together > 0; --together) Happen();
      wake = dispatcher_->Step(now_);
      EXPECT_GT(wake, now_) << "a step must not ask to be repeated at once";
      Agree();
      if (::testing::Test::HasFailure()) return;
    }
    End();
  }

  const std::vector<JournalRecord>& journal() const { return journal_; }

  void Launch(const Batch& batch) override {
    const std::size_t m = batch.model.value();
    const std::size_t lane = batch.lane.value();
    EXPECT_TRUE(open_[lane]) << "launched on a closed lane";
    EXPECT_TRUE(lanes_[lane].serves.contains(batch.model)) << "launched where the model is not";
    EXPECT_TRUE(served_models_->models[m].loaded);
    EXPECT_LE(batch.requests.size(), static_cast<std::size_t>(served_models_->models[m].max_batch));
    EXPECT_EQ(batch.expected_end - batch.start,
              served_models_->profile.Latency(batch.model, batch.exit,
                                              static_cast<int>(batch.requests.size()),
                                              lanes_[lane].lane_class));
    Running& running = running_[batch.id];
    running = {.model = m, .lane = lane};
    for (const Request& request : batch.requests) {
      if (options_.expiry == Expiry::kUnmeetable || never_late_) {
        EXPECT_LE(batch.expected_end, request.deadline) << "launched though known to be late";
      }
      ASSERT_FALSE(waiting_[m].empty());
      EXPECT_EQ(waiting_[m].begin()->second, request.id) << "not the most urgent";
      EXPECT_EQ(request.shape, batch.requests[0].shape) << "shapes mixed in one batch";
      waiting_[m].erase(waiting_[m].begin());
      running.requests.insert(request.id);
    }
    const auto here = std::count_if(running_.begin(), running_.end(),
                                    [lane](const auto& r) { return r.second.lane == lane; });
    EXPECT_LE(here, static_cast<std::ptrdiff_t>(lanes_[lane].slots)) << "a lane over its slots";
  }
  void Abort(LaneId lane, BatchId batch) override {
    ASSERT_TRUE(running_.contains(batch));
    EXPECT_EQ(running_[batch].lane, lane.value());
    EXPECT_FALSE(running_[batch].abort) << "asked to stop twice";
    running_[batch].abort = true;
  }
  void Reject(ModelId model, const Request& request, DropReason reason) override {
    End(request.id);
    const std::size_t m = model.value();
    const bool by_policy = journal_.back().kind == JournalRecord::Kind::kDrop;
    if (reason == DropReason::kExpired && !by_policy) {
      EXPECT_NE(options_.expiry, Expiry::kNever);
      const Duration needed = options_.expiry == Expiry::kUnmeetable ? Longest(model) : Duration{};
      EXPECT_GT(now_ + needed, request.deadline) << "given up while it could be met";
    }
    if (m < waiting_.size()) waiting_[m].erase({request.deadline, request.id});
    for (auto& [id, running] : running_) running.requests.erase(request.id);
  }
  void Complete(const Batch& batch, const BatchReport&) override {
    std::set<RequestId> answered;
    for (const Request& request : batch.requests) {
      End(request.id);
      answered.insert(request.id);
    }
    EXPECT_EQ(answered, running_[batch.id].requests);
  }
  void Append(const JournalRecord& record) noexcept override { journal_.push_back(record); }

 private:
  static constexpr ModelId::rep kPinned = 6;  // models that lanes may be pinned to

  struct Running {
    std::size_t model = 0;
    std::size_t lane = 0;
    std::set<RequestId> requests;
    bool abort = false;
  };

  // No batch that a policy may choose takes longer.
  Duration Longest(ModelId m) const {
    const ProfileTable& profile = served_models_->profile;
    Duration longest{};
    for (int e = 0; e < profile.exits(m); ++e) {
      for (int b = 1; b <= profile.max_batch(m); ++b) {
        const ExitId exit{static_cast<ExitId::rep>(e)};
        for (const LaneSpec& lane : lanes_) {
          longest = std::max(longest, profile.Latency(m, exit, b, lane.lane_class));
        }
      }
    }
    return longest;
  }

  // To the very instant that the dispatcher asked for, or to any other: drivers may be late.
  void Advance(TimePoint wake) {
    if (wake != kNever && chance_.OneIn(3)) {
      now_ = std::max(now_, wake);
    } else if (!chance_.OneIn(4)) {
      now_ += Nanos(chance_.Below(chance_.OneIn(20) ? 20'000'000 : 1'000'000));
    }
  }

  void Redeploy(std::size_t models) {
    auto served_models = std::make_shared<ServedModels>();
    std::vector<ProfileTable::ModelRows> rows;
    for (std::size_t i = 0; i < models; ++i) {
      Model model{.name = "m", .slo = Millis(static_cast<int>(5 + 5 * chance_.Below(5)))};
      model.max_batch = 1 + static_cast<int>(chance_.Below(6));
      model.loaded = chance_.Below(6) != 0;
      ProfileTable::ModelRows row;
      if (model.loaded) {
        row = {.exits = 1 + static_cast<int>(chance_.Below(3)), .max_batch = model.max_batch};
        for (int e = 0; e < row.exits * classes_; ++e) {
          for (int b = 0; b < row.max_batch; ++b) {
            row.latency.push_back(
                Micros(static_cast<int>(100 + chance_.Below(3000) * (e % row.exits + 1))));
          }
        }
      }
      served_models->models.push_back(model);
      rows.push_back(row);
    }
    served_models->profile = ProfileTable(classes_, rows);
    waiting_.resize(models);
    served_models_ = served_models;
    dispatcher_->Configure(served_models);
    Plan();
  }

  // Where the policy reads plans: one for rates that have nothing to do with what arrives, or none.
  void Plan() {
    if (policy_->traits().planner != "nexus") return;
    if (chance_.OneIn(4)) return dispatcher_->Adopt(nullptr);
    std::vector<NexusSession> sessions;
    for (std::size_t i = 0; i < served_models_->models.size(); ++i) {
      const Model& model = served_models_->models[i];
      NexusSession& session = sessions.emplace_back();
      session.rate_rps = static_cast<double>(chance_.Below(2000));
      session.slo = model.slo;
      const ModelId m{static_cast<ModelId::rep>(i)};
      for (int b = 1; model.loaded && b <= model.max_batch; ++b) {
        session.latency.push_back(served_models_->profile.Latency(
            m, FinalExit(served_models_->profile, m), b, lanes_[0].lane_class));
      }
    }
    dispatcher_->Adopt(std::make_shared<const ::tactus::Plan>(
        PlanNexus(sessions, static_cast<int>(lanes_.size()), ++epoch_)));
  }

  void Happen() {
    const std::uint64_t what = chance_.Below(200);
    if (what < 120) return Arrive();
    if (what < 135) return Cancel();
    if (what < 136) return Redeploy(waiting_.size() + chance_.Below(2));
    if (what < 137) return Plan();
    if (what < 141) {
      const std::size_t lane = chance_.Below(open_.size());
      open_[lane] = chance_.Below(3) != 0;
      return dispatcher_->SetLaneOpen(LaneId{static_cast<LaneId::rep>(lane)}, open_[lane]);
    }
    if (!running_.empty()) {
      Finish(std::next(running_.begin(), static_cast<int>(chance_.Below(running_.size())))->first);
    }
  }
  void Arrive() {
    const std::size_t m = chance_.Below(waiting_.size() + 1);  // the last one does not exist
    const ModelId model{static_cast<ModelId::rep>(m)};
    const Duration slo = m < waiting_.size() ? served_models_->models[m].slo : Millis(10);
    const Duration patience = chance_.Below(3) == 0 ? Nanos(chance_.Below(slo.count())) : slo;
    const Request request{.id = RequestId{++last_id_},
                          .arrival = now_,
                          .deadline = now_ + patience,
                          .shape = static_cast<std::uint32_t>(chance_.Below(10) / 9)};
    alive_.insert(request.id);
    if (m < waiting_.size()) waiting_[m].insert({request.deadline, request.id});
    dispatcher_->Arrive(model, request);
  }
  void Cancel() {
    if (last_id_ == 0) return;
    const std::uint64_t back = chance_.Below(std::min<std::uint64_t>(last_id_, 40));
    const ModelId m{static_cast<ModelId::rep>(chance_.Below(waiting_.size()))};
    dispatcher_->Cancel(m, RequestId{last_id_ - back});
  }
  void Finish(BatchId batch) {
    const std::uint64_t how = chance_.Below(10);
    const bool asked = running_[batch].abort;
    const BatchStatus status = asked && how < 7 ? BatchStatus::kAborted
                               : how < 8        ? BatchStatus::kOk
                               : how < 9        ? BatchStatus::kFailed
                                                : BatchStatus::kLost;
    const Running before = running_[batch];
    const LaneId lane{static_cast<LaneId::rep>(before.lane)};
    if (status == BatchStatus::kLost) open_[before.lane] = false;
    dispatcher_->Finish(lane, batch, {.started = now_, .ended = now_, .status = status}, now_);
    running_.erase(batch);
    // Those that did not end went back to their queue.
    const RequestQueue* queue = &dispatcher_->view().queues[before.model];
    for (std::size_t i = 0; i < queue->size(); ++i) {
      if (before.requests.contains((*queue)[i].id)) {
        EXPECT_TRUE(alive_.contains((*queue)[i].id)) << "answered and queued again";
        waiting_[before.model].insert({(*queue)[i].deadline, (*queue)[i].id});
      }
    }
  }
  // Every request that is alive waits or runs, once, and the dispatcher says the same.
  void Agree() {
    std::size_t queued = 0;
    std::size_t running = 0;
    for (const auto& queue : waiting_) queued += queue.size();
    for (const auto& [id, batch] : running_) running += batch.requests.size();
    EXPECT_EQ(dispatcher_->waiting(), queued);
    EXPECT_EQ(dispatcher_->running(), running_.size());
    EXPECT_EQ(alive_.size(), queued + running) << "a request is lost";
  }
  // Everything ends: what runs finishes, what waits is unloaded.
  void End() {
    auto nothing = std::make_shared<ServedModels>(*served_models_);
    for (Model& model : nothing->models) model.loaded = false;
    dispatcher_->Configure(nothing);
    while (!running_.empty()) Finish(running_.begin()->first);
    EXPECT_TRUE(alive_.empty()) << alive_.size() << " requests were never answered";
  }
  void End(RequestId id) {
    EXPECT_EQ(alive_.erase(id), 1u) << "request " << id.value() << " ended twice";
  }
  Chance& chance_;
  const bool never_late_;
  std::unique_ptr<Policy> policy_;
  DispatcherOptions options_;
  int classes_ = 1;
  std::vector<LaneSpec> lanes_;
  std::uint64_t epoch_ = 0;
  std::vector<bool> open_;
  std::shared_ptr<const ServedModels> served_models_;
  std::unique_ptr<Dispatcher> dispatcher_;
  TimePoint now_ = kStart;
  std::uint64_t last_id_ = 0;
  std::set<RequestId> alive_;
  std::vector<std::set<std::pair<TimePoint, RequestId>>> waiting_;  // by model
  std::map<BatchId, Running> running_;
  std::vector<JournalRecord> journal_;
};

}  // namespace tactus
