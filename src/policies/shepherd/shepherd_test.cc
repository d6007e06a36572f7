// Shepherd's Flex as tables of states.
#include "policies/shepherd/shepherd.h"

#include <gtest/gtest.h>

#include "core/batch.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

TimePoint At(int ms) { return kStart + Millis(ms); }

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
  policy.OnBatchDone(LaneId{1}, table.lanes[1].running()[0], BatchReport{}, At(1));
  table.lanes[1].batches.clear();
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

}  // namespace
}  // namespace tactus
