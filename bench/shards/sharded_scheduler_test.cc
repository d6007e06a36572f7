// What threads must not break, whatever their order: every request ends once, no lane has two
// batches, no batch starts late. No instant is asserted: on a busy machine more requests expire.
#include "shards/sharded_scheduler.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

class Ledger final : public ShardOutbox {
 public:
  struct Run {
    LaneId lane;
    TimePoint start;
    TimePoint end;
  };

  void Launch(const GrantedBatch& batch) override {
    runs.push_back({batch.lane, batch.start, batch.end});
    late_starts += batch.end > batch.requests.front().deadline;
    due_after_start += batch.due > batch.start;
    for (const Request& request : batch.requests) {
      ++ends[request.id];
      ++launched;
    }
  }
  void Reject(ModelId, const Request& request, DropReason reason, TimePoint) override {
    ++ends[request.id];
    ++dropped[reason];
  }

  std::vector<Run> runs;
  std::map<RequestId, int> ends;
  std::map<DropReason, int> dropped;
  std::size_t launched = 0;
  int late_starts = 0;
  int due_after_start = 0;
};

struct Setting {
  std::uint32_t shards;
  std::size_t models;
  std::size_t lanes;
  Schedulable schedulable;
  Gather gather = Gather::kPrefix;
};

class Threads : public ::testing::TestWithParam<Setting> {};

void Push(SpscRing<Arrival>& ring, const Arrival& arrival) {
  while (!ring.TryPush(arrival)) std::this_thread::yield();
}

TEST_P(Threads, EndEveryRequestOnceAndNoLaneHasTwoBatches) {
  constexpr std::uint64_t kRequests = 30'000;
  const Setting setting = GetParam();
  std::vector<Model> models;
  std::vector<ProfileTable::ModelRows> rows;
  for (std::size_t m = 0; m < setting.models; ++m) {
    const int max_batch = 1 + static_cast<int>(m % 8);
    models.push_back({.name = "m", .slo = Millis(30), .max_batch = max_batch, .exits = {{}}});
    ProfileTable::ModelRows row{.exits = 1, .max_batch = max_batch};
    for (int b = 1; b <= max_batch; ++b) row.latency.push_back(Micros(100 + 40 * b));
    rows.push_back(row);
  }
  std::vector<Ledger> ledgers(setting.shards);
  std::vector<ShardOutbox*> outboxes;
  for (Ledger& ledger : ledgers) outboxes.push_back(&ledger);
  ShardedScheduler scheduler({.shards = setting.shards,
                              .lanes = setting.lanes,
                              .shard = {.policy = {.candidate = {.schedulable = setting.schedulable,
                                                                 .gather = setting.gather}},
                                        .queue_capacity = 64},
                              .arrival_ring = 256,
                              .arrivals_at_once = 32},
                             models, ProfileTable(1, rows), outboxes);
  scheduler.Start();
  Rng rng = Rng::Stream(setting.lanes, "threads");
  for (std::uint64_t id = 0; id < kRequests; ++id) {
    const ModelId m{static_cast<ModelId::rep>(rng.Below(setting.models))};
    const TimePoint now = ShardedScheduler::Now();
    // Some come too late, or out of the order of their deadlines.
    const Duration allowed =
        rng.Below(20) == 0 ? Micros(static_cast<int>(rng.Below(30'000))) : models[m.value()].slo;
    Push(scheduler.arrivals(scheduler.ShardOf(m)),
         {m, {.id = RequestId{id}, .arrival = now, .deadline = now + allowed}});
  }
  scheduler.Stop();

  std::vector<Ledger::Run> runs;
  std::size_t ended = 0;
  std::size_t launched = 0;
  for (const Ledger& ledger : ledgers) {
    runs.insert(runs.end(), ledger.runs.begin(), ledger.runs.end());
    for (const auto& [id, times] : ledger.ends) EXPECT_EQ(times, 1) << "request " << id.value();
    ended += ledger.ends.size();
    launched += ledger.launched;
    EXPECT_EQ(ledger.late_starts, 0);
    EXPECT_EQ(ledger.due_after_start, 0);
  }
  EXPECT_EQ(ended, kRequests);
  EXPECT_GT(launched, 0u);
  std::sort(runs.begin(), runs.end(), [](const Ledger::Run& a, const Ledger::Run& b) {
    return std::pair(a.lane, a.start) < std::pair(b.lane, b.start);
  });
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].lane != runs[i - 1].lane) continue;
    EXPECT_LE(runs[i - 1].end, runs[i].start) << "lane " << runs[i].lane.value() << " has two";
  }
  for (const Ledger::Run& run : runs) EXPECT_LT(run.lane.value(), setting.lanes);
}

INSTANTIATE_TEST_SUITE_P(Settings, Threads,
                         ::testing::Values(Setting{1, 1, 1, Schedulable::kFrontrun},
                                           Setting{1, 7, 3, Schedulable::kEager},
                                           Setting{2, 35, 8, Schedulable::kFrontrun},
                                           Setting{2, 35, 512, Schedulable::kTimeout},
                                           Setting{3, 200, 70, Schedulable::kFrontrun,
                                                   Gather::kWindow}));

// A request that arrived just before Stop is not forgotten.
TEST(ShardedScheduler, StopsWithoutAnArrivalAndWithOne) {
  const Model model{.name = "m", .slo = Millis(5), .max_batch = 1, .exits = {{}}};
  const ProfileTable profile(
      1, std::vector{ProfileTable::ModelRows{.exits = 1, .max_batch = 1, .latency = {Millis(1)}}});
  for (const bool arrives : {false, true}) {
    Ledger ledger;
    std::vector<ShardOutbox*> outboxes = {&ledger};
    ShardedScheduler scheduler({}, {&model, 1}, profile, outboxes);
    scheduler.Start();
    EXPECT_GE(scheduler.ShardCpuTime(0), Duration::zero());
    EXPECT_GE(scheduler.RankCpuTime(), Duration::zero());
    const TimePoint now = ShardedScheduler::Now();
    if (arrives) {
      Push(scheduler.arrivals(0),
           {ModelId{0}, {.id = RequestId{1}, .arrival = now, .deadline = now + model.slo}});
    }
    scheduler.Stop();
    EXPECT_EQ(ledger.ends.size(), arrives ? 1u : 0u);
  }
}

}  // namespace
}  // namespace tactus
