// Random lives of a dispatcher: every event it can meet, in any order, under every policy and one
// that decides at random, beside a plain account of what must be true. A failure names the seed;
// run that life alone with
//
//   tactus_soak_test --first=SEED --lives=1
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/feasible.h"
#include "dispatch/dispatcher.h"
#include "policies/registry.h"

namespace tactus {
namespace {

std::uint64_t first_seed = 1;
std::uint64_t lives = 2000;

// Any legal decision, with no regard for sense: what the dispatcher must survive.
class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(std::uint64_t seed) : rng_(Rng::Stream(seed, "random policy")) {}
  std::string_view name() const override { return "random"; }
  Decision Decide(const View& view, TimePoint now) override {
    const std::uint64_t what = rng_.Below(8);
    const ModelId m{static_cast<ModelId::rep>(rng_.Below(view.queues.size()))};
    const RequestQueue& queue = view.queues[m.value()];
    if (what < 4 && !queue.empty()) {
      if (const Lane* lane = FirstFreeLane(view.lanes, m)) {
        const int limit = 1 + static_cast<int>(rng_.Below(LargestBatch(view, m)));
        const ExitId exit{static_cast<ExitId::rep>(rng_.Below(view.profile.exits(m)))};
        return Dispatch{m, exit, queue.Batchable(limit), lane->id};
      }
    }
    if (what == 4 && !queue.empty()) {
      return Drop{.model = m, .count = static_cast<int>(1 + rng_.Below(queue.size()))};
    }
    if (what == 5) {
      const Lane& lane = view.lanes[rng_.Below(view.lanes.size())];
      if (!lane.running().empty()) {
        const BatchId batch = lane.running()[rng_.Below(lane.running().size())].id;
        if (preempted_.insert(batch).second) return Preempt{.lane = lane.id, .batch = batch};
      }
    }
    return Wait{.until = rng_.Below(2) == 0 ? kNever : now + Micros(1 + rng_.Below(5000))};
  }

 private:
  Rng rng_;
  std::set<BatchId> preempted_;
};

// One life. The account (`waiting_`, `running_`) is kept from what the outbox is told alone.
class Life final : public Outbox, public Journal {
 public:
  explicit Life(std::uint64_t seed) : rng_(Rng::Stream(seed, "soak")) {
    const auto names = Policies();
    const std::uint64_t which = rng_.Below(names.size() + 2);
    policy_ = which < names.size() ? *MakePolicy(names[which].name)
                                   : std::make_unique<RandomPolicy>(seed);
    options_.queue_capacity = 1 + rng_.Below(60);
    options_.expiry = static_cast<Expiry>(rng_.Below(3));
    std::vector<LaneSpec> lanes(1 + rng_.Below(3));
    for (LaneSpec& lane : lanes) lane.slots = 1 + static_cast<int>(rng_.Below(3));
    for (const LaneSpec& lane : lanes) slots_.push_back(lane.slots);
    open_.assign(lanes.size(), true);
    dispatcher_ = std::make_unique<Dispatcher>(options_, lanes, *policy_, *this, this);
    Redeploy(1 + rng_.Below(5));
  }

  void Run(int events) {
    for (int i = 0; i < events; ++i) {
      now_ += Duration{static_cast<std::int64_t>(rng_.Exponential(2e-6))};
      for (std::uint64_t together = 1 + rng_.Below(3); together > 0; --together) Happen();
      const TimePoint wake = dispatcher_->Step(now_);
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
    EXPECT_TRUE(deployment_->models[m].loaded);
    EXPECT_LE(batch.requests.size(), static_cast<std::size_t>(deployment_->models[m].max_batch));
    EXPECT_EQ(batch.expected_end - batch.start,
              deployment_->profile.Latency(batch.model, batch.exit,
                                           static_cast<int>(batch.requests.size()), LaneClass{0}));
    Running& running = running_[batch.id];
    running = {.model = m, .lane = lane};
    for (const Request& request : batch.requests) {
      if (options_.expiry == Expiry::kHopeless) {
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
    EXPECT_LE(here, slots_[lane]) << "a lane over its slots";
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
      const Duration needed = options_.expiry == Expiry::kHopeless ? Longest(model) : Duration{};
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
  struct Running {
    std::size_t model = 0;
    std::size_t lane = 0;
    std::set<RequestId> requests;
    bool abort = false;
  };

  // No batch that a policy may choose takes longer.
  Duration Longest(ModelId m) const {
    const ProfileTable& profile = deployment_->profile;
    Duration longest{};
    for (int e = 0; e < profile.exits(m); ++e) {
      for (int b = 1; b <= profile.max_batch(m); ++b) {
        const ExitId exit{static_cast<ExitId::rep>(e)};
        longest = std::max(longest, profile.Latency(m, exit, b, LaneClass{0}));
      }
    }
    return longest;
  }

  void Redeploy(std::size_t models) {
    auto deployment = std::make_shared<Deployment>();
    std::vector<ProfileTable::ModelRows> rows;
    for (std::size_t i = 0; i < models; ++i) {
      Model model{.name = "m", .slo = Millis(static_cast<int>(5 + 5 * rng_.Below(5)))};
      model.max_batch = 1 + static_cast<int>(rng_.Below(6));
      model.loaded = rng_.Below(6) != 0;
      ProfileTable::ModelRows row;
      if (model.loaded) {
        row = {.exits = 1 + static_cast<int>(rng_.Below(3)), .max_batch = model.max_batch};
        for (int e = 0; e < row.exits; ++e) {
          for (int b = 0; b < row.max_batch; ++b) {
            row.latency.push_back(Micros(static_cast<int>(100 + rng_.Below(3000) * (e + 1))));
          }
        }
      }
      deployment->models.push_back(model);
      rows.push_back(row);
    }
    deployment->profile = ProfileTable(1, rows);
    waiting_.resize(models);
    deployment_ = deployment;
    dispatcher_->Configure(deployment);
  }

  void Happen() {
    const std::uint64_t what = rng_.Below(200);
    if (what < 120) return Arrive();
    if (what < 135) return Cancel();
    if (what < 136) return Redeploy(waiting_.size() + rng_.Below(2));
    if (what < 140) {
      const std::size_t lane = rng_.Below(open_.size());
      open_[lane] = rng_.Below(3) != 0;
      return dispatcher_->SetLaneOpen(LaneId{static_cast<LaneId::rep>(lane)}, open_[lane]);
    }
    if (!running_.empty()) {
      Finish(std::next(running_.begin(), static_cast<int>(rng_.Below(running_.size())))->first);
    }
  }
  void Arrive() {
    const std::size_t m = rng_.Below(waiting_.size() + 1);  // the last one does not exist
    const ModelId model{static_cast<ModelId::rep>(m)};
    const Duration slo = m < waiting_.size() ? deployment_->models[m].slo : Millis(10);
    const Duration patience = rng_.Below(3) == 0 ? Nanos(rng_.Below(slo.count())) : slo;
    const Request request{.id = RequestId{++last_id_},
                          .arrival = now_,
                          .deadline = now_ + patience,
                          .shape = static_cast<std::uint32_t>(rng_.Below(10) / 9)};
    alive_.insert(request.id);
    if (m < waiting_.size()) waiting_[m].insert({request.deadline, request.id});
    dispatcher_->Arrive(model, request);
  }
  void Cancel() {
    if (last_id_ == 0) return;
    const std::uint64_t back = rng_.Below(std::min<std::uint64_t>(last_id_, 40));
    const ModelId m{static_cast<ModelId::rep>(rng_.Below(waiting_.size()))};
    dispatcher_->Cancel(m, RequestId{last_id_ - back});
  }
  void Finish(BatchId batch) {
    const std::uint64_t how = rng_.Below(10);
    const bool asked = running_[batch].abort;
    const BatchStatus status = asked && how < 7 ? BatchStatus::kAborted
                               : how < 8        ? BatchStatus::kOk
                               : how < 9        ? BatchStatus::kFailed
                                                : BatchStatus::kLost;
    const Running before = running_[batch];
    const LaneId lane{static_cast<LaneId::rep>(before.lane)};
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
    auto nothing = std::make_shared<Deployment>(*deployment_);
    for (Model& model : nothing->models) model.loaded = false;
    dispatcher_->Configure(nothing);
    while (!running_.empty()) Finish(running_.begin()->first);
    EXPECT_TRUE(alive_.empty()) << alive_.size() << " requests were never answered";
  }
  void End(RequestId id) {
    EXPECT_EQ(alive_.erase(id), 1u) << "request " << id.value() << " ended twice";
  }
  Rng rng_;
  std::unique_ptr<Policy> policy_;
  DispatcherOptions options_;
  std::vector<int> slots_;
  std::vector<bool> open_;
  std::shared_ptr<const Deployment> deployment_;
  std::unique_ptr<Dispatcher> dispatcher_;
  TimePoint now_ = kStart;
  std::uint64_t last_id_ = 0;
  std::set<RequestId> alive_;
  std::vector<std::set<std::pair<TimePoint, RequestId>>> waiting_;  // by model
  std::map<BatchId, Running> running_;
  std::vector<JournalRecord> journal_;
};

TEST(DispatcherSoak, KeepsItsPromisesWhateverHappens) {
  std::size_t records = 0;
  for (std::uint64_t i = 0; i < lives && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first_seed + i));
    Life life(first_seed + i);
    life.Run(400);
    records += life.journal().size();
  }
  EXPECT_GT(records, lives * 400);
}

// The same events lead to the same decisions, every one: what replay stands on.
TEST(DispatcherSoak, DecidesTheSameTwice) {
  for (std::uint64_t i = 0; i < lives / 8 + 1 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first_seed + i));
    Life one(first_seed + i);
    Life two(first_seed + i);
    one.Run(400);
    two.Run(400);
    EXPECT_TRUE(one.journal() == two.journal());
  }
}

bool ReadFlag(std::string_view argument, std::string_view flag, std::uint64_t& value) {
  if (!argument.starts_with(flag)) return false;
  argument.remove_prefix(flag.size());
  return std::from_chars(argument.data(), argument.data() + argument.size(), value).ec ==
         std::errc{};
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (!tactus::ReadFlag(argv[i], "--lives=", tactus::lives) &&
        !tactus::ReadFlag(argv[i], "--first=", tactus::first_seed)) {
      std::fprintf(stderr, "unknown argument %s; --lives=N and --first=SEED are known\n", argv[i]);
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
