// Nexus's lanes and front ends as tables of states.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "policies/registry.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

// l(b) = 5 + b, SLO 50; lane 0 runs both models in turn, lane 1 only model 1.
TableForTest PlannedTable(Policy& policy) {
  TableForTest table;
  for (int i = 0; i < 2; ++i) table.AddModel(Millis(50), Millis(5), Millis(1), 16);
  table.AddLanes(2);
  table.planned = true;
  table.plan.lanes.resize(2);
  table.plan.lanes[0] = {.cycle = Millis(20),
                         .entries = {{.model = TableForTest::M(0), .batch = 4},
                                     {.model = TableForTest::M(1), .batch = 2}}};
  table.plan.lanes[1] = {.cycle = Millis(10),
                         .entries = {{.model = TableForTest::M(1), .batch = 4}}};
  policy.Prepare(table.view());
  policy.OnPlan(table.view());
  return table;
}

TEST(Nexus, RunsALanesModelsInTurn) {
  const auto made = MakePolicy("nexus:frontends=0").value();
  Policy& policy = *made;
  TableForTest table = PlannedTable(policy);
  table.Run(1, 1, 1, At(0));
  policy.OnLaneChange(table.lanes[1]);
  table.Push(policy, 0, At(50), 3);
  table.Push(policy, 1, At(50), 2);
  for (const std::size_t expected : {0u, 1u, 0u, 1u}) {
    const Decision decision = policy.Decide(table.view(), At(0));
    ASSERT_TRUE(std::holds_alternative<Dispatch>(decision));
    const auto& d = std::get<Dispatch>(decision);
    EXPECT_EQ(d.model, TableForTest::M(expected));
    EXPECT_EQ(d.lane, LaneId{0});
    table.Pop(policy, d.model, d.batch);
    table.Push(policy, expected, At(50), 2);
  }
}

// Model 1 gets 2 per 20 ms on lane 0 and 4 per 10 ms on lane 1: one in five goes to lane 0.
TEST(Nexus, RoutesByWhatThePlanGives) {
  const auto made = MakePolicy("nexus:grow=yes").value();
  Policy& policy = *made;
  TableForTest table = PlannedTable(policy);
  table.Push(policy, 1, At(50), 10);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(1, 2, 0));
  table.CarryOut(policy, std::get<Dispatch>(policy.Decide(table.view(), At(0))), At(0));
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(1, 8, 1));
  table.CarryOut(policy, std::get<Dispatch>(policy.Decide(table.view(), At(0))), At(0));
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Decision{Wait{}});
}

// A lane never takes what was sent to another one, though it idles.
TEST(Nexus, LanesDoNotHelpEachOther) {
  const auto made = MakePolicy("nexus").value();
  Policy& policy = *made;
  TableForTest table = PlannedTable(policy);
  table.Push(policy, 1, At(50));  // the first goes where the weight is
  table.Run(1, 1, 1, At(0));
  policy.OnLaneChange(table.lanes[1]);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Decision{Wait{At(44) + Nanos(1)}});
  const auto made_shared = MakePolicy("nexus:frontends=0").value();
  Policy& shared = *made_shared;
  shared.OnPlan(table.view());
  shared.Prepare(table.view());
  EXPECT_EQ(shared.Decide(table.view(), At(0)), Launch(1, 1, 0));
}

TEST(Nexus, GivesUpHeadsThatHoldABatchUnderItsPlannedSize) {
  const auto made = MakePolicy("nexus:frontends=0,grow=no").value();
  Policy& policy = *made;
  TableForTest table = PlannedTable(policy);
  table.Push(policy, 0, At(8), 2);
  table.Push(policy, 0, At(20), 3);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 3, 0)) << "three behind: too few";
  table.Push(policy, 0, At(20), 3);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), GiveUp(0, 2, DropReason::kShed));
  table.Pop(policy, TableForTest::M(0), 2);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(0, 4, 0));
  EXPECT_EQ(policy.Decide(table.view(), At(15)), GiveUp(0, 1, DropReason::kExpired));
}

// Under overload each lane has its part of every age. What is too old for a planned batch goes, so
// that the batch is of the planned size all the same.
TEST(Nexus, KeepsItsBatchSizeUnderOverload) {
  const auto made = MakePolicy("nexus").value();
  Policy& policy = *made;
  TableForTest table = PlannedTable(policy);
  table.Push(policy, 1, At(6), 20);
  table.Push(policy, 1, At(30), 20);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), GiveUp(1, 20, DropReason::kShed));
  table.Pop(policy, TableForTest::M(1), 20);
  // Of 40 a fifth, 8, were sent to lane 0; the longer queue gave up more.
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(1, 8, 0));
}

// Eight front ends that do not talk send a lane more in one moment and less in another.
TEST(Nexus, FrontEndsWithoutCoordinationRouteUnevenly) {
  const auto most_ahead = [](int front_ends) {
    const auto made = MakePolicy("nexus:frontends=" + std::to_string(front_ends)).value();
    Policy& policy = *made;
    TableForTest table;
    table.AddModel(Millis(50), Millis(5), Millis(1), 200);
    table.AddLanes(2);
    table.planned = true;
    table.plan.lanes.assign(2,
                            {.cycle = Millis(10), .entries = {{.model = ModelId{0}, .batch = 4}}});
    policy.Prepare(table.view());
    policy.OnPlan(table.view());
    int most = 0;
    for (int n = 1; n <= 60; ++n) {
      table.Push(policy, 0, At(1000));
      const Decision decision = policy.Decide(table.view(), At(0));
      const auto& lane0 = std::get<Dispatch>(decision);
      const int claimed = lane0.lane == LaneId{0} ? lane0.batch : 0;
      most = std::max(most, std::abs(2 * claimed - n));
    }
    return most;
  };
  EXPECT_EQ(most_ahead(1), 1);
  EXPECT_GT(most_ahead(8), 2);
}

TEST(Nexus, WithoutAPlanEveryLaneRunsEveryModel) {
  const auto made = MakePolicy("nexus").value();
  Policy& policy = *made;
  TableForTest table;
  for (int i = 0; i < 2; ++i) table.AddModel(Millis(50), Millis(5), Millis(1), 16);
  table.AddLanes(1);
  policy.Prepare(table.view());
  table.Push(policy, 1, At(50), 3);
  EXPECT_EQ(policy.Decide(table.view(), At(0)), Launch(1, 3, 0));
}

}  // namespace
}  // namespace tactus
