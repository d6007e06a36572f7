// Shepherd's Flex as tables of states.
#include "policies/shepherd/shepherd.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/batch.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

TableForTest ThreeModels(Policy& policy, int lanes) {
  TableForTest table;
  for (int i = 0; i < 3; ++i) table.AddModel(Millis(50), Millis(5), Millis(1), 16);
  table.AddLanes(lanes);
  policy.Prepare(table.view());
  return table;
}

Decision Stop(const TableForTest& table, std::size_t lane) {
  return Preempt{.lane = table.lanes[lane].id, .batch = table.lanes[lane].running()[0].id};
}

TEST(Shepherd, RunsTheLargestCandidate) {
  Shepherd policy("shepherd", {});
  TableForTest table = ThreeModels(policy, 2);
  table.Push(policy, 0, At(20), 3);
  table.Push(policy, 1, At(40), 5);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(1, 5, 0));
  table.Push(policy, 0, At(21), 2);  // equal: the one that must start first
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 5, 0));
  // By 14 model 0 has time for one request only.
  EXPECT_EQ(policy.Decide(table.view(), At(14)), Launch(1, 5, 0));
}

TEST(Shepherd, StopsABatchForOneThreeTimesAsLargeOfAnotherModel) {
  Shepherd policy("shepherd", {});
  TableForTest table = ThreeModels(policy, 3);
  table.Run(0, 0, 3, At(0));
  table.Run(1, 0, 2, At(0));
  table.Run(2, 1, 1, At(0));
  table.Push(policy, 1, At(40), 5);
  EXPECT_TRUE(std::holds_alternative<Wait>(policy.Decide(table.view(), At(1))))
      << "5 < 3 x 2, and the single one is of the same model";
  table.Push(policy, 1, At(40));
  EXPECT_EQ(policy.Decide(table.view(), At(1)), Stop(table, 1));
  // One lane is on its way: no second batch is stopped for the same candidate.
  EXPECT_TRUE(std::holds_alternative<Wait>(policy.Decide(table.view(), At(1))));
  // Nor is the same batch stopped twice, though a third model would like it.
  table.Push(policy, 2, At(40), 6);
  EXPECT_EQ(policy.Decide(table.view(), At(1)), Stop(table, 2));
  table.lanes[1].batches.clear();
  policy.OnLaneChange(table.lanes[1]);
  EXPECT_EQ(policy.Decide(table.view(), At(1)), Launch(1, 6, 1));
}

TEST(Shepherd, StopsTheSmallestThenTheYoungest) {
  Shepherd policy("shepherd", {});
  TableForTest table = ThreeModels(policy, 3);
  table.Run(0, 0, 2, At(0));
  table.Run(1, 0, 1, At(0));
  table.Run(2, 0, 1, At(2));
  table.Push(policy, 1, At(40), 9);
  EXPECT_EQ(policy.Decide(table.view(), At(3)), Stop(table, 2));
}

// Two models with batches of one size would stop each other's without end.
TEST(Shepherd, StopsNoBatchForAnEqualOne) {
  for (const double factor : {0.5, 1.0}) {
    Shepherd policy("shepherd", {.factor = factor});
    TableForTest table = ThreeModels(policy, 1);
    table.Run(0, 0, 2, At(0));
    table.Push(policy, 1, At(40), 2);
    EXPECT_TRUE(std::holds_alternative<Wait>(policy.Decide(table.view(), At(1)))) << factor;
    table.Push(policy, 1, At(40));
    EXPECT_EQ(policy.Decide(table.view(), At(1)), Stop(table, 0)) << factor;
  }
}

TEST(Shepherd, NeverStopsWithoutPreemption) {
  Shepherd policy("shepherd", {.factor = 0});
  TableForTest table = ThreeModels(policy, 1);
  table.Run(0, 0, 1, At(0));
  table.Push(policy, 1, At(40), 16);
  EXPECT_TRUE(std::holds_alternative<Wait>(policy.Decide(table.view(), At(1))));
}

// What stops, by the rule as it is written: every model against every batch. Nothing is being
// stopped, no lane is free.
Decision PlainStop(const TableForTest& table, TimePoint now) {
  for (std::size_t m = 0; m < table.models.size(); ++m) {
    const RequestQueue& queue = table.queues[m];
    if (queue.empty()) continue;
    int made = queue.Batchable(table.models[m].max_batch);
    const ModelId model = TableForTest::M(m);
    while (made > 0 && now + table.profile.Latency(model, ExitId{0}, made, LaneClass{0}) >
                           queue.front().deadline) {
      --made;
    }
    const Lane* victim = nullptr;
    for (const Lane& lane : table.lanes) {
      const RunningBatch& batch = lane.running()[0];
      if (batch.model == model || made < 3 * batch.batch) continue;
      if (victim == nullptr || batch.batch < victim->running()[0].batch ||
          (batch.batch == victim->running()[0].batch &&
           batch.started > victim->running()[0].started)) {
        victim = &lane;
      }
    }
    if (victim != nullptr) return Preempt{.lane = victim->id, .batch = victim->running()[0].id};
  }
  return Wait{};
}

// A shortcut that leaves out a queue which could stop something would make the rival weaker.
TEST(Shepherd, StopsWhatTheRuleAsWrittenStops) {
  int stopped = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::Stream(seed, "shepherd test");
    Shepherd policy("shepherd", {});
    const int lanes = 1 + static_cast<int>(rng.Below(5));
    TableForTest table = ThreeModels(policy, lanes);
    for (int i = 0; i < lanes; ++i) {
      const int batch = 1 + static_cast<int>(rng.Below(4));
      table.Run(i, rng.Below(3), batch, At(-static_cast<int>(rng.Below(4))));
    }
    for (std::size_t m = 0; m < 3; ++m) {
      // From 6 ms on one request can be met, so none is given up.
      table.Push(policy, m, At(6 + static_cast<int>(rng.Below(15))),
                 static_cast<int>(rng.Below(13)));
    }
    const Decision expected = PlainStop(table, At(0));
    const Decision decided = policy.Decide(table.view(), At(0));
    if (std::holds_alternative<Preempt>(expected)) {
      ++stopped;
      EXPECT_EQ(decided, expected);
    } else {
      EXPECT_TRUE(std::holds_alternative<Wait>(decided));
    }
  }
  EXPECT_GT(stopped, 500) << "the states are too tame to show anything";
}

}  // namespace
}  // namespace tactus
