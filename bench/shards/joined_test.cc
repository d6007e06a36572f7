// Without this, the sharded scheduler could be fast and decide something else than the policy: it
// is fed the journals of dispatchers with `symphony` and must launch the same batches on the same
// lanes at the same instants, and give up the same requests.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "dispatch/dispatcher.h"
#include "policies/symphony/symphony_plain_for_test.h"
#include "shards/stepped_scheduler.h"

namespace tactus {
namespace {

using Kind = JournalRecord::Kind;

struct Launched {
  ModelId model;
  LaneId lane;
  TimePoint start;
  std::vector<RequestId> requests;
  bool operator==(const Launched&) const = default;
};

struct Given {  // given up
  // A journal does not say when a cancellation came, but before which step.
  Given(DropReason why, TimePoint now)
      : reason(why), at(why == DropReason::kCancelled ? kStart : now) {}

  DropReason reason;
  TimePoint at;
  bool operator==(const Given&) const = default;
};

// What came of a journal, by either form.
struct Trace {
  std::vector<Launched> launches;
  std::map<RequestId, Given> drops;
};

struct World {
  std::vector<Model> models;
  ProfileTable profile;
  std::size_t lanes = 1;
  std::size_t queue_capacity = 64;
  SymphonyOptions policy;
  bool exact = false;   // batches take what the profile says
  bool hurried = true;  // some clients want their answers sooner than the SLO
  int requests = 0;
};

World MakeWorld(Rng& rng) {
  World world;
  std::vector<ProfileTable::ModelRows> rows;
  const std::size_t models = 1 + rng.Below(9);
  for (std::size_t m = 0; m < models; ++m) {
    const int max_batch = 1 + static_cast<int>(rng.Below(8));
    ProfileTable::ModelRows row{.exits = 1, .max_batch = max_batch};
    const auto alpha = static_cast<std::int64_t>(100 + rng.Below(2'000));
    const auto beta = static_cast<std::int64_t>(rng.Below(10'000));
    // Measured tables are not straight lines. They do not fall, or else the dispatcher's idea of
    // what is unmeetable (alone is quickest) would not be the policy's.
    std::int64_t bend = 0;
    for (int b = 1; b <= max_batch; ++b) {
      bend += static_cast<std::int64_t>(rng.Below(300));
      row.latency.push_back(Micros(alpha * b + beta + bend));
    }
    world.models.push_back({.name = "m" + std::to_string(m),
                            .slo = 2 * row.latency.back() + Millis(1),
                            .max_batch = max_batch,
                            .exits = {{}}});
    rows.push_back(std::move(row));
  }
  world.profile = ProfileTable(1, rows);
  world.lanes = 1 + rng.Below(6);
  world.queue_capacity = rng.Below(3) == 0 ? 5 : 64;
  constexpr std::array kWhen = {Schedulable::kFrontrun, Schedulable::kEager, Schedulable::kTimeout,
                                Schedulable::kLatest};
  world.policy.candidate = {.schedulable = kWhen[rng.Below(kWhen.size())],
                            .timeout = Millis(static_cast<int>(rng.Below(8))),
                            .gather = rng.Below(2) == 0 ? Gather::kPrefix : Gather::kWindow};
  const bool frontrun = world.policy.candidate.schedulable == Schedulable::kFrontrun;
  if (frontrun && rng.Below(2) == 0) world.policy.lead_share = 0.3 * rng.Uniform();
  if (rng.Below(2) == 0) world.policy.timeout_share = rng.Uniform();
  if (rng.Below(2) == 0) world.policy.aim = 0.1 + 0.9 * rng.Uniform();
  if (rng.Below(3) == 0) {
    world.policy.delays = {.control = Micros(static_cast<std::int64_t>(rng.Below(1'000))),
                           .per_request = Micros(static_cast<std::int64_t>(rng.Below(100)))};
    // A shard refuses at once what the delays alone make unmeetable; a dispatcher, which knows
    // nothing of a policy's delays, lets it wait until it is the head.
    world.hurried = false;
  }
  world.policy.rate_window = Millis(100);
  world.exact = rng.Below(2) == 0;
  world.requests = 400;
  return world;
}

// A life of the joined form: arrivals in bursts, cancellations, lanes that close and open, batches
// that take longer or shorter than profiled. Everything is written into a journal.
class Joined final : public Outbox, public Journal {
 public:
  Joined(const World& world, Rng& rng)
      : world_(world),
        rng_(rng),
        policy_("symphony", world.policy),
        dispatcher_({.queue_capacity = world.queue_capacity}, std::vector<LaneSpec>(world.lanes),
                    policy_, *this, this),
        closed_(world.lanes, false) {
    dispatcher_.Configure(
        std::make_shared<ServedModels>(ServedModels{world.models, world.profile}));
  }

  void Run() {
    TimePoint arrival = kStart;
    while (arrival < kNever || !running_.empty() || dispatcher_.waiting() > 0) {
      const TimePoint finish = running_.empty() ? kNever : running_.begin()->first;
      now_ = std::min({arrival, finish, wake_});
      ASSERT_LT(now_, kNever) << "requests wait and nothing is to happen";
      FinishDue();
      while (arrival <= now_) arrival = ArriveAndDraw();
      if (!world_.exact && rng_.Below(8) == 0) Disturb();
      if (last_id_ >= static_cast<std::uint64_t>(world_.requests)) OpenAll();
      wake_ = dispatcher_.Step(now_);
    }
  }

  void Launch(const Batch& batch) override {
    Launched launched{batch.model, batch.lane, now_, {}};
    for (const Request& request : batch.requests) launched.requests.push_back(request.id);
    trace.launches.push_back(std::move(launched));
    const Duration profiled = batch.expected_end - batch.start;
    const Duration took = world_.exact ? profiled : profiled * Percent(70, 150) / 100;
    running_.emplace(now_ + took, std::pair(batch.lane, batch.id));
  }
  void Abort(LaneId, BatchId) override {}  // it ends when it ends
  void Reject(ModelId, const Request& request, DropReason reason) override {
    if (reason == DropReason::kCancelled && !waiting_cancelled_) return;  // it ran already
    trace.drops.insert_or_assign(request.id, Given(reason, now_));
  }
  void Complete(const Batch&, const BatchReport&) override {}
  void Append(const JournalRecord& record) noexcept override { journal.push_back(record); }

  Trace trace;
  std::vector<JournalRecord> journal;

 private:
  std::int64_t Percent(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(rng_.Below(static_cast<std::uint64_t>(most - least)));
  }
  void FinishDue() {
    while (!running_.empty() && running_.begin()->first <= now_) {
      const auto [lane, batch] = running_.begin()->second;
      running_.erase(running_.begin());
      dispatcher_.Finish(lane, batch, {.ended = now_}, now_);
    }
  }
  // One arrival now; when the next one comes.
  TimePoint ArriveAndDraw() {
    const ModelId m{static_cast<ModelId::rep>(rng_.Below(world_.models.size()))};
    const Duration slo = world_.models[m.value()].slo;
    // Some clients are in a hurry, some too much.
    const Duration deadline =
        world_.hurried && rng_.Below(5) == 0 ? slo * Percent(0, 100) / 100 : slo;
    dispatcher_.Arrive(m, {.id = RequestId{++last_id_},
                           .arrival = now_,
                           .deadline = now_ + deadline,
                           .shape = rng_.Below(12) == 0 ? 1u : 0u});
    if (last_id_ >= static_cast<std::uint64_t>(world_.requests)) return kNever;
    if (rng_.Below(3) == 0) return now_;  // a burst
    // Changes between idle and overload within a life.
    const int mean = 200 + 4'000 * (last_id_ / 100 % 2);
    return now_ + Micros(static_cast<std::int64_t>(rng_.Exponential(1.0 / mean)));
  }
  void Disturb() {
    if (rng_.Below(2) == 0) {
      const ModelId m{static_cast<ModelId::rep>(rng_.Below(world_.models.size()))};
      const std::size_t waiting = dispatcher_.waiting();
      const RequestId id{1 + rng_.Below(last_id_)};
      waiting_cancelled_ = !WasLaunched(id);
      dispatcher_.Cancel(m, id);
      ASSERT_LE(dispatcher_.waiting(), waiting);
    } else {
      const std::size_t lane = rng_.Below(world_.lanes);
      closed_[lane] = !closed_[lane];
      dispatcher_.SetLaneOpen(LaneId{static_cast<LaneId::rep>(lane)}, !closed_[lane]);
    }
  }
  void OpenAll() {
    for (std::size_t lane = 0; lane < world_.lanes; ++lane) {
      if (!closed_[lane]) continue;
      closed_[lane] = false;
      dispatcher_.SetLaneOpen(LaneId{static_cast<LaneId::rep>(lane)}, true);
    }
  }
  bool WasLaunched(RequestId id) const {
    return std::any_of(trace.launches.begin(), trace.launches.end(), [&](const Launched& l) {
      return std::find(l.requests.begin(), l.requests.end(), id) != l.requests.end();
    });
  }

  const World& world_;
  Rng& rng_;
  PlainSymphony policy_;
  Dispatcher dispatcher_;
  std::vector<bool> closed_;
  TimePoint now_ = kStart;
  TimePoint wake_ = kNever;
  std::uint64_t last_id_ = 0;
  bool waiting_cancelled_ = false;
  std::multimap<TimePoint, std::pair<LaneId, BatchId>> running_;
};

class Sharded final : public ShardOutbox {
 public:
  Sharded(const World& world, std::uint32_t shards, LaneRelease release)
      : scheduler_(shards, world.models, world.profile, world.lanes,
                   {.policy = world.policy, .queue_capacity = world.queue_capacity}, release,
                   *this) {}

  // Steps when the journal does, and hears of completions from it.
  void Follow(const std::vector<JournalRecord>& journal) {
    TimePoint now = kStart;
    for (const JournalRecord& r : journal) {
      if (r.kind == Kind::kArrive || r.kind == Kind::kFinish) now = r.at;
      Feed(r, now);
      if (r.kind == Kind::kFinish) scheduler_.OnLaneFree(LaneId{r.lane}, now);
      if (r.kind == Kind::kStep) scheduler_.Step(now = r.at);
    }
  }

  // Takes only the arrivals from the journal: its own timers and lanes must do the rest.
  void Lead(const std::vector<JournalRecord>& journal) {
    TimePoint wake = kNever;
    for (std::size_t i = 0; i < journal.size();) {
      if (journal[i].kind != Kind::kArrive) {
        ++i;
        continue;
      }
      const TimePoint now = journal[i].at;
      while (wake < now) wake = scheduler_.Step(wake);
      for (; i < journal.size() && journal[i].kind == Kind::kArrive; ++i) Feed(journal[i], now);
      wake = scheduler_.Step(now);
    }
    while (scheduler_.waiting() > 0) wake = scheduler_.Step(wake);
  }

  void Launch(const GrantedBatch& batch) override {
    Launched launched{batch.model, batch.lane, batch.start, {}};
    for (const Request& request : batch.requests) launched.requests.push_back(request.id);
    EXPECT_LE(batch.end, batch.requests.front().deadline) << "launched and known to be late";
    EXPECT_LE(batch.due, batch.start);
    trace.launches.push_back(std::move(launched));
  }
  void Reject(ModelId, const Request& request, DropReason reason, TimePoint now) override {
    EXPECT_FALSE(trace.drops.contains(request.id)) << "dropped twice";
    trace.drops.insert_or_assign(request.id, Given(reason, now));
  }

  Trace trace;

 private:
  void Feed(const JournalRecord& r, TimePoint now) {
    switch (r.kind) {
      case Kind::kArrive:
        return scheduler_.Arrive(ModelId{r.model}, {.id = RequestId{r.id},
                                                    .arrival = r.at,
                                                    .deadline = r.deadline,
                                                    .shape = r.shape,
                                                    .priority = r.priority});
      case Kind::kCancel:
        return scheduler_.Cancel(ModelId{r.model}, RequestId{r.id}, now);
      case Kind::kLane:
        return scheduler_.SetLaneOpen(LaneId{r.lane}, r.detail != 0, now);
      default:
        return;
    }
  }

  SteppedScheduler scheduler_;
};

void ExpectSame(const Trace& joined, const Trace& sharded) {
  for (std::size_t i = 0; i < std::min(joined.launches.size(), sharded.launches.size()); ++i) {
    const Launched& a = joined.launches[i];
    const Launched& b = sharded.launches[i];
    ASSERT_EQ(a, b) << "launch " << i << ": joined model " << a.model.value() << " x"
                    << a.requests.size() << " lane " << a.lane.value() << " at "
                    << ToMillis(a.start - kStart) << " ms; sharded model " << b.model.value()
                    << " x" << b.requests.size() << " lane " << b.lane.value() << " at "
                    << ToMillis(b.start - kStart) << " ms";
  }
  ASSERT_EQ(joined.launches.size(), sharded.launches.size());
  for (const auto& [id, drop] : joined.drops) {
    const auto found = sharded.drops.find(id);
    ASSERT_NE(found, sharded.drops.end()) << "request " << id.value() << " was not dropped";
    ASSERT_EQ(found->second, drop) << "request " << id.value();
  }
  ASSERT_EQ(joined.drops.size(), sharded.drops.size());
}

TEST(JoinedAndSharded, LeaveTheSameDecisionsForOneJournal) {
  std::size_t launches = 0;
  std::array<std::size_t, 5> drops{};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "joined");
    const World world = MakeWorld(rng);
    Joined joined(world, rng);
    joined.Run();
    for (const std::uint32_t shards : {1u, 2u, 3u}) {
      SCOPED_TRACE(std::to_string(shards) + " shards");
      Sharded sharded(world, shards, LaneRelease::kReported);
      sharded.Follow(joined.journal);
      ExpectSame(joined.trace, sharded.trace);
    }
    if (HasFatalFailure()) return;
    launches += joined.trace.launches.size();
    for (const auto& [id, drop] : joined.trace.drops) ++drops[static_cast<int>(drop.reason)];
  }
  // The journals held what they are meant to test.
  EXPECT_GT(launches, 10'000u);
  EXPECT_GT(drops[static_cast<int>(DropReason::kExpired)], 1'000u);
  EXPECT_GT(drops[static_cast<int>(DropReason::kQueueFull)], 100u);
  EXPECT_GT(drops[static_cast<int>(DropReason::kShed)], 100u);
  EXPECT_GT(drops[static_cast<int>(DropReason::kCancelled)], 50u);
}

// The shards' and lanes' own timers wake the scheduler at every instant that matters.
TEST(JoinedAndSharded, LeaveTheSameDecisionsOnTheirOwnTimers) {
  std::size_t launches = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "own timers");
    World world = MakeWorld(rng);
    world.exact = true;
    Joined joined(world, rng);
    joined.Run();
    for (const std::uint32_t shards : {1u, 3u}) {
      Sharded sharded(world, shards, LaneRelease::kAtProfiledEnd);
      sharded.Lead(joined.journal);
      ExpectSame(joined.trace, sharded.trace);
    }
    if (HasFatalFailure()) return;
    launches += joined.trace.launches.size();
  }
  EXPECT_GT(launches, 10'000u);
}

}  // namespace
}  // namespace tactus
