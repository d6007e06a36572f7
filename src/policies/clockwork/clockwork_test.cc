// Clockwork as tables of states.
#include "policies/clockwork/clockwork.h"

#include <gtest/gtest.h>

#include "policies/table_for_test.h"

namespace tactus {
namespace {

// Two models with l(b) = 5 + b and l(b) = 1 + 2 b ms.
TableForTest TwoModels(Policy& policy, int lanes) {
  TableForTest table;
  table.AddModel(Millis(50), Millis(5), Millis(1), 8);
  table.AddModel(Millis(50), Millis(1), Millis(2), 8);
  table.AddLanes(lanes);
  policy.Prepare(table.view());
  return table;
}

// Four of model 0 due at 20 must start by 11; two of model 1 due at 17 by 12.
TEST(Clockwork, TakesTheBatchWhoseLatestStartComesFirst) {
  Clockwork policy("clockwork", {});
  TableForTest table = TwoModels(policy, 1);
  table.Push(policy, 0, At(20), 4);
  table.Push(policy, 1, At(17), 2);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 4, 0));
  table.Push(policy, 1, At(18));  // three of model 1 must start by 10
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(1, 3, 0));
}

TEST(Clockwork, RunsTheLargestBatchThatMeetsTheHeadsDeadline) {
  Clockwork policy("clockwork", {});
  TableForTest table = TwoModels(policy, 2);
  table.Push(policy, 0, At(20), 6);
  const struct {
    int now;
    int batch;
  } cases[] = {{0, 6}, {9, 6}, {10, 5}, {13, 2}, {14, 1}};
  for (const auto& c : cases) {
    EXPECT_EQ(policy.Decide(table.view(), At(c.now)), Launch(0, c.batch, 0)) << c.now;
  }
  EXPECT_EQ(policy.Decide(table.view(), At(15)), GiveUp(0, 1, DropReason::kExpired));
}

TEST(Clockwork, KnowsOnlyTheSizesItIsGiven) {
  Clockwork policy("clockwork", {.sizes = {1, 2, 4}});
  TableForTest table = TwoModels(policy, 1);
  table.Push(policy, 0, At(20), 7);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 4, 0));
  EXPECT_EQ(policy.Decide(table.view(), At(12)), Launch(0, 2, 0));
}

// With a margin of 2 a batch of four counts as 18 ms.
TEST(Clockwork, PlansWithItsEstimates) {
  Clockwork policy("clockwork", {.margin = 2});
  TableForTest table = TwoModels(policy, 1);
  table.Push(policy, 0, At(20), 7);
  EXPECT_EQ(policy.Decide(table.view(), At(2)), Launch(0, 4, 0));
  EXPECT_EQ(policy.Decide(table.view(), At(9)), GiveUp(0, 1, DropReason::kExpired));
}

// As profiled model 1 would have to start first, by 14 against 16 ms; with a margin of 2 model 0
// does, by 10 against 11.
TEST(Clockwork, OrdersByItsEstimatesToo) {
  Clockwork policy("clockwork", {.margin = 2});
  TableForTest table = TwoModels(policy, 1);
  table.Push(policy, 0, At(22));
  table.Push(policy, 1, At(17));
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 1, 0));
}

// What Figure 13 (right) turns on: its work grows with batch sizes times lanes.
TEST(Clockwork, ExaminesACandidateForEachBatchSizeAndLane) {
  Clockwork every("clockwork", {});
  TableForTest table = TwoModels(every, 3);
  table.Push(every, 0, At(20), 2);
  EXPECT_EQ(every.examined(), 2u * 8 * 3);
  Clockwork some("clockwork", {.sizes = {1, 2, 4, 8, 16}});
  TableForTest other = TwoModels(some, 3);
  other.Push(some, 0, At(20), 2);
  EXPECT_EQ(some.examined(), 2u * 4 * 3);
}

TEST(Clockwork, WaitsUntilAHeadIsLostWhileEveryLaneIsBusy) {
  Clockwork policy("clockwork", {});
  TableForTest table = TwoModels(policy, 1);
  table.Push(policy, 0, At(20));
  table.Run(0, 1, 1, At(0));
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Decision{Wait{At(14) + Nanos(1)}});
}

}  // namespace
}  // namespace tactus
