// Timeout batching as tables of states.
#include "policies/timeout/timeout.h"

#include <gtest/gtest.h>

#include "policies/table_for_test.h"

namespace tactus {
namespace {

// SLO 50, l(b) = 5 + b: a request that is due at 50 came at 0.
TableForTest TwoModels(Policy& policy) {
  TableForTest table;
  for (int i = 0; i < 2; ++i) table.AddModel(Millis(50), Millis(5), Millis(1), 8);
  table.AddLanes(2);
  policy.Prepare(table.view());
  return table;
}

TEST(Timeout, WaitsForAFullBatchOrTheOldestRequest) {
  Timeout policy("timeout", {.delay = Millis(10)});
  TableForTest table = TwoModels(policy);
  table.Push(policy, 0, At(50), 3);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Decision{Wait{At(10)}});
  EXPECT_EQ(policy.Decide(table.view(), At(10)), Launch(0, 3, 0));
  table.Push(policy, 0, At(51), 7);
  EXPECT_EQ(policy.Decide(table.view(), At(1)), Launch(0, 8, 0));
}

// Triton: the largest preferred size that can be formed goes at once; others wait for the delay.
TEST(Timeout, SendsPreferredSizesAtOnce) {
  Timeout policy("timeout", {.delay = Millis(10), .preferred = {2, 4}});
  TableForTest table = TwoModels(policy);
  table.Push(policy, 0, At(50));
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Decision{Wait{At(10)}});
  table.Push(policy, 0, At(50), 2);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 2, 0));
  table.Push(policy, 0, At(50), 3);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 4, 0));
  table.Push(policy, 0, At(50), 3);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 8, 0)) << "nine wait, eight is full";
}

TEST(Timeout, ServesTheLongestWaitFirst) {
  Timeout policy("timeout", {});
  TableForTest table = TwoModels(policy);
  table.Push(policy, 0, At(52), 8);
  table.Push(policy, 1, At(51));
  EXPECT_EQ(policy.Decide(table.view(), At(3)), Launch(1, 1, 0));
}

// 0.2 of 50 ms are l(5); of the delay likewise.
TEST(Timeout, BoundsBatchAndDelayByTheSlo) {
  Timeout policy("timeout", {.delay_share = 0.1, .fill = 0.2});
  TableForTest table = TwoModels(policy);
  table.Push(policy, 0, At(50), 4);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Decision{Wait{At(5)}});
  table.Push(policy, 0, At(50), 3);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 5, 0));
}

TEST(Timeout, GivesUpWhatIsLostUnlessToldNotTo) {
  Timeout gives_up("timeout", {});
  TableForTest table = TwoModels(gives_up);
  table.Push(gives_up, 0, At(50));
  EXPECT_EQ(gives_up.Decide(table.view(), At(45)), GiveUp(0, 1, DropReason::kExpired));
  Timeout keeps("timeout", {.drop_lost = false});
  keeps.Prepare(table.view());
  EXPECT_EQ(keeps.Decide(table.view(), At(45)), Launch(0, 1, 0));
}

}  // namespace
}  // namespace tactus
