// A plan's lanes and turns as tables of states.
#include "policies/planned/planned.h"

#include <gtest/gtest.h>

#include "policies/table_for_test.h"

namespace tactus {
namespace {

// l(b) = 5 + b, SLO 50; lane 0 runs models 0 and 1 in batches of 4 and 2, lane 1 model 1 in batches
// of 4. Model 1 gets 2 per 20 ms here and 4 per 10 ms there: one in five goes to lane 0.
class PlannedTest : public ::testing::Test {
 protected:
  explicit PlannedTest(PlannedOptions options = {}) : policy_("planned", options) {
    for (int i = 0; i < 2; ++i) table_.AddModel(Millis(50), Millis(5), Millis(1), 16);
    table_.AddLanes(2);
    table_.planned = true;
    table_.plan.lanes = {
        {.cycle = Millis(20),
         .entries = {{.model = ModelId{0}, .batch = 4}, {.model = ModelId{1}, .batch = 2}}},
        {.cycle = Millis(10), .entries = {{.model = ModelId{1}, .batch = 4}}}};
    policy_.Prepare(table_.view());
    policy_.OnPlan(table_.view());
  }

  Decision Decide(int ms) { return policy_.Decide(table_.view(), At(ms)); }
  // Decides, and carries out what it is.
  Decision Next(int ms) {
    const Decision decision = Decide(ms);
    if (const auto* dispatch = std::get_if<Dispatch>(&decision)) {
      table_.CarryOut(policy_, *dispatch, At(ms));
      policy_.OnLaneChange(table_.lanes[dispatch->lane.value()]);
    } else if (const auto* drop = std::get_if<Drop>(&decision)) {
      table_.Pop(policy_, drop->model, drop->count);
    }
    return decision;
  }
  void End(std::size_t lane) {
    table_.lanes[lane].batches.clear();
    policy_.OnLaneChange(table_.lanes[lane]);
  }

  TableForTest table_;
  Planned policy_;
};

// Without it one model could keep a lane from another for longer than a cycle.
TEST_F(PlannedTest, ModelsTakeTurnsInBatchesOfThePlannedSize) {
  table_.Push(policy_, 0, At(50), 9);
  table_.Push(policy_, 1, At(50), 5);
  EXPECT_EQ(Next(0), Launch(0, 4, 0));
  EXPECT_EQ(Next(0), Launch(1, 4, 1));
  EXPECT_EQ(Next(0), Decision{Wait{At(44) + Nanos(1)}}) << "both lanes are busy";
  End(0);
  EXPECT_EQ(Next(9), Launch(1, 1, 0)) << "one in five was sent here";
  End(0);
  EXPECT_EQ(Next(15), Launch(0, 4, 0)) << "model 1 has nothing: passed over";
  End(0);
  EXPECT_EQ(Next(24), Launch(0, 1, 0)) << "alone, back to back";
}

TEST_F(PlannedTest, ALaneTakesNothingThatWasSentToAnother) {
  table_.Push(policy_, 1, At(50), 5);
  EXPECT_EQ(Next(0), Launch(1, 1, 0));
  EXPECT_EQ(Next(0), Launch(1, 4, 1));
  End(0);
  table_.Push(policy_, 1, At(50), 2);
  EXPECT_EQ(Decide(7), Decision{Wait{At(44) + Nanos(1)}}) << "they are of the other lane";
  End(1);
  EXPECT_EQ(Next(9), Launch(1, 2, 1));
}

// A batch that a head holds small is lost time, and those behind it pay; but heads are requests
// too.
TEST_F(PlannedTest, AloneOnALaneHeadsGoWhereThatServesMore) {
  table_.plan.lanes[0].entries = {{.model = ModelId{0}, .batch = 8}};
  policy_.OnPlan(table_.view());
  table_.Push(policy_, 0, At(8), 2);
  table_.Push(policy_, 0, At(30), 2);
  EXPECT_EQ(Decide(0), Launch(0, 3, 0)) << "two without the heads";
  table_.Push(policy_, 0, At(6), 1);
  EXPECT_EQ(Next(0), GiveUp(0, 1, DropReason::kShed)) << "one alone, or three without it";
  EXPECT_EQ(Next(0), Launch(0, 3, 0));
}

TEST_F(PlannedTest, GivesUpWhatCannotBeMet) {
  table_.Push(policy_, 0, At(8), 2);
  table_.Push(policy_, 0, At(30), 4);
  EXPECT_EQ(Next(0), GiveUp(0, 2, DropReason::kShed)) << "they would hold four to a batch of three";
  EXPECT_EQ(Next(0), Launch(0, 4, 0));
  table_.Push(policy_, 0, At(30), 1);
  EXPECT_EQ(Next(1), Decision{Wait{At(24) + Nanos(1)}});
  const auto late = policy_.Decide(table_.view(), At(24) + Nanos(1));
  EXPECT_EQ(late, GiveUp(0, 1, DropReason::kExpired)) << "nobody could answer it any more";
}

// A request in the queue belongs to nobody's plan in particular: the next plan serves it.
TEST_F(PlannedTest, ANewPlanTakesOverWhatWaits) {
  table_.Push(policy_, 0, At(50), 3);
  table_.plan.lanes = {{.cycle = Millis(20), .entries = {{.model = ModelId{1}, .batch = 2}}},
                       {.cycle = Millis(20), .entries = {{.model = ModelId{0}, .batch = 2}}}};
  policy_.OnPlan(table_.view());
  EXPECT_EQ(Next(0), Launch(0, 3, 1)) << "alone on its lane, whatever is planned";
  table_.Push(policy_, 0, At(50));
  table_.plan.lanes[1].entries.clear();
  policy_.OnPlan(table_.view());
  EXPECT_EQ(Next(1), Decision{Wait{At(44) + Nanos(1)}}) << "no lane has it: a next plan may";
}

TEST_F(PlannedTest, WithoutAPlanEveryLaneRunsEveryModel) {
  table_.planned = false;
  policy_.OnPlan(table_.view());
  table_.Push(policy_, 1, At(50), 2);
  EXPECT_EQ(Next(0), Launch(1, 1, 0));
  EXPECT_EQ(Next(0), Launch(1, 1, 1));
}

class GrowingPlannedTest : public PlannedTest {
 protected:
  GrowingPlannedTest() : PlannedTest({.grow = true}) {}
};

TEST_F(GrowingPlannedTest, ABatchIsAsLargeAsItsHeadAllows) {
  table_.Push(policy_, 0, At(12), 9);
  EXPECT_EQ(Next(0), Launch(0, 7, 0));
}

// What a lane that dies was to run would wait for it, late for ever, beside one that has the model.
TEST_F(PlannedTest, TheOtherLanesRunWhatADeadOneWasToRun) {
  table_.Push(policy_, 1, At(80), 5);
  const auto set_open = [&](bool open) {
    table_.lanes[1].open = open;
    policy_.OnLaneChange(table_.lanes[1]);
  };
  set_open(false);
  for (const int batch : {2, 2, 1}) {
    EXPECT_EQ(Next(0), Launch(1, batch, 0));
    End(0);
  }
  table_.Push(policy_, 1, At(80), 2);
  set_open(true);
  table_.Push(policy_, 1, At(80), 5);
  EXPECT_EQ(Next(1), Launch(1, 2, 0));
  const Decision back = Next(1);
  ASSERT_TRUE(std::holds_alternative<Dispatch>(back));
  EXPECT_EQ(std::get<Dispatch>(back).lane, LaneId{1});
}

class StrictWindows : public PlannedTest {
 protected:
  explicit StrictWindows(PlannedOptions::Windows windows = PlannedOptions::Windows::kStrict)
      : PlannedTest({.windows = windows}) {
    const auto place = [](PlanEntry& entry, int offset, int length) {
      entry.offset = Millis(offset);
      entry.length = Millis(length);
    };
    place(table_.plan.lanes[0].entries[0], 0, 10);
    place(table_.plan.lanes[0].entries[1], 10, 10);
    place(table_.plan.lanes[1].entries[0], 0, 10);
    policy_.OnPlan(table_.view());
  }
};

// A plan that keeps batches apart which would slow each other counts on their windows: one that
// started early, or ran over, would run beside what it was kept from.
TEST_F(StrictWindows, ABatchStartsAndEndsInsideItsWindow) {
  EXPECT_EQ(Next(3), Decision{Wait{}}) << "cycles begin here";
  table_.Push(policy_, 1, At(60), 5);
  EXPECT_EQ(Next(3), Launch(1, 4, 1));
  EXPECT_EQ(Next(3), Decision{Wait{At(13)}});
  EXPECT_EQ(Next(13), Launch(1, 1, 0));
  End(0);
  table_.Push(policy_, 0, At(120), 4);
  EXPECT_EQ(Next(24), Launch(0, 4, 0)) << "it just fits";
  End(0);
  table_.Push(policy_, 0, At(120), 4);
  EXPECT_EQ(Next(45), Launch(0, 3, 0)) << "what is left of the window has room for three";
  End(0);
  EXPECT_EQ(Next(48), Decision{Wait{At(63)}});
  policy_.OnPlan(table_.view());
  EXPECT_EQ(Next(50), Launch(0, 1, 0)) << "another plan's cycles begin with it";
}

class DeferredWindows : public StrictWindows {
 protected:
  DeferredWindows() : StrictWindows(PlannedOptions::Windows::kDefer) {}
};

// l(b) = 5 + b, windows of 10 on lane 0: model 0 from 3 on each 20, in batches of 4. Started at
// once, the first to come would go alone and those behind it would find the window taken.
TEST_F(DeferredWindows, ABatchStartsAsLateInItsWindowAsOneMoreCouldJoin) {
  EXPECT_EQ(Next(3), Decision{Wait{}}) << "cycles begin here";
  table_.Push(policy_, 0, At(120), 1);
  EXPECT_EQ(Next(4), Decision{Wait{At(6)}}) << "two would take 7, to the window's end at 13";
  table_.Push(policy_, 0, At(120), 1);
  EXPECT_EQ(Next(5), Launch(0, 2, 0)) << "three would take 8";
  End(0);
  table_.Push(policy_, 0, At(120), 1);
  EXPECT_EQ(Next(24), Decision{Wait{At(26)}});
  EXPECT_EQ(Next(26), Launch(0, 1, 0)) << "nobody joined";
  End(0);
  table_.Push(policy_, 0, At(120), 1);
  table_.Push(policy_, 0, At(120), 3);
  EXPECT_EQ(Next(43), Launch(0, 4, 0)) << "nobody else may";
}

TEST_F(DeferredWindows, TheHeadsDeadlineComesBeforeTheWindowsEnd) {
  EXPECT_EQ(Next(3), Decision{Wait{}});
  table_.Push(policy_, 0, At(11), 1);
  EXPECT_EQ(Next(3), Decision{Wait{At(4)}}) << "two would be there at 11";
  EXPECT_EQ(Next(4), Launch(0, 1, 0));
  End(0);
  table_.Push(policy_, 0, At(29), 1);
  EXPECT_EQ(Next(23), Launch(0, 1, 0)) << "it is pressing already";
}

// A batch that may run at any time would else begin while another waits in its window, and take it.
TEST_F(DeferredWindows, OthersRunOnTheLaneOnlyWhereTheyEndBeforeWhatWaits) {
  table_.plan.lanes[0].cycle = Millis(40);
  table_.plan.lanes[0].entries[0].length = Millis(20);
  table_.plan.lanes[0].entries[1].length = Duration{};  // model 1: any time
  table_.plan.lanes[1].entries.clear();
  policy_.OnPlan(table_.view());
  EXPECT_EQ(Next(0), Decision{Wait{}});
  table_.Push(policy_, 0, At(120), 1);
  EXPECT_EQ(Next(1), Decision{Wait{At(13)}}) << "two would take 7, to 20";
  table_.Push(policy_, 1, At(120), 2);
  EXPECT_EQ(Next(6), Launch(1, 2, 0)) << "it ends at 13";
  End(0);
  table_.Push(policy_, 1, At(120), 2);
  EXPECT_EQ(Next(8), Decision{Wait{At(13)}});
  EXPECT_EQ(Next(13), Launch(0, 1, 0));
}

// Windows say when, so a lane idles beside a request that has none now; in order they do not.
TEST_F(PlannedTest, WithoutStrictWindowsTheyAreAnOrder) {
  table_.plan.lanes[0].entries[1].offset = Millis(10);
  table_.plan.lanes[0].entries[1].length = Millis(10);
  policy_.OnPlan(table_.view());
  table_.Push(policy_, 1, At(60), 1);
  table_.Push(policy_, 1, At(60), 4);
  EXPECT_EQ(Next(0), Launch(1, 1, 0));
}

}  // namespace
}  // namespace tactus
