// Strait's Algorithm 1 as stories: who may share a device, who must wait, who is given up.
#include "policies/strait/strait.h"

#include <array>
#include <cstdint>
#include <memory>
#include <tuple>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/batch.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

constexpr int kHigh = 1;
constexpr int kLow = 2;

// A device that a test fills by hand, and the policy that watches. The predictor does not learn, so
// that every figure below can be worked out from its first parameters.
class StraitTest : public ::testing::Test {
 protected:
  // l(b) = base + b ms alone, `share` of every resource whatever the batch.
  std::size_t Model(int priority, Duration slo, Duration base, double share) {
    constexpr int kMaxBatch = 8;
    table_.AddModel(slo, base, Millis(1), kMaxBatch);
    table_.models.back().priority = priority;
    table_.rows.back().use.assign(kMaxBatch,
                                  ResourceUse{{share, share, share, share, share}, transfer_});
    table_.profile = ProfileTable(1, table_.rows);
    return table_.models.size() - 1;
  }
  void Devices(int count, int slots, StraitOptions options = {}) {
    options.interference.learn = false;
    options.formation = 0;
    table_.AddLanes(count);
    for (Lane& lane : table_.lanes) {
      lane.slots = slots;
      lane.batches = FixedVector<RunningBatch>(slots);
    }
    policy_ = std::make_unique<Strait>("strait", options);
    policy_->Prepare(table_.view());
  }
  void Push(std::size_t m, TimePoint deadline, int count = 1) {
    table_.Push(*policy_, m, deadline, count);
  }
  // One with a priority of its own.
  void PushOwn(std::size_t m, TimePoint deadline, int priority) {
    ASSERT_TRUE(table_.queues[m].Push({.id = RequestId{table_.next_id++},
                                       .deadline = deadline,
                                       .priority = static_cast<std::uint32_t>(priority)}));
  }
  Decision Ask(TimePoint now) { return policy_->Decide(table_.view(), now); }
  void CarryOut(const Decision& decision, TimePoint now) {
    const auto& d = std::get<Dispatch>(decision);
    const RequestQueue& queue = table_.queues[d.model.value()];
    const TimePoint deadline = queue.front().deadline;
    const int priority = queue.Priority(d.batch, table_.models[d.model.value()].priority);
    table_.Pop(*policy_, d.model, d.batch);
    Lane& lane = table_.lanes[d.lane.value()];
    lane.batches.push_back(
        {BatchId{table_.next_id++}, d.model, d.exit, d.batch, now, now, deadline, priority});
    policy_->OnLaneChange(lane);
  }
  void Launched(const Decision& wanted, TimePoint now) {
    const Decision decision = Ask(now);
    ASSERT_EQ(decision, wanted);
    CarryOut(decision, now);
  }
  void Done(std::size_t lane, std::size_t i, TimePoint started, TimePoint now) {
    const RunningBatch batch = table_.lanes[lane].batches[i];
    table_.lanes[lane].batches.SwapErase(i);
    policy_->OnBatchDone(table_.lanes[lane].id, batch, {started, now}, now);
    policy_->OnLaneChange(table_.lanes[lane]);
  }
  static bool Waits(const Decision& decision) { return std::holds_alternative<Wait>(decision); }

  Duration transfer_{};
  TableForTest table_;
  std::unique_ptr<Strait> policy_;
};

TEST_F(StraitTest, ServesTheHighestLevelFirstAndTheDueFirstWithinIt) {
  const auto low = Model(kLow, Millis(90), Millis(1), 0.1);
  const auto high = Model(kHigh, Millis(90), Millis(1), 0.1);
  const auto other = Model(kHigh, Millis(90), Millis(1), 0.1);
  Devices(1, 3);
  Push(low, At(40));
  Push(high, At(80));
  Push(other, At(60));
  Launched(Launch(other, 1, 0), At(0));
  Launched(Launch(high, 1, 0), At(0));
  Launched(Launch(low, 1, 0), At(0));
  EXPECT_TRUE(Waits(Ask(At(0))));
}

TEST_F(StraitTest, GivesUpWhatCannotFinishEvenAlone) {
  const auto m = Model(kHigh, Millis(50), Millis(9), 0.1);
  Devices(1, 2);
  Push(m, At(20));
  Push(m, At(30));
  EXPECT_EQ(Ask(At(11)), GiveUp(m, 1, DropReason::kExpired));
}

// Alone, 8 take 12 ms: at 10 they meet a deadline of 22; at 13 only five do.
TEST_F(StraitTest, TakesTheLargestBatchThatMeetsItsDeadline) {
  const auto m = Model(kHigh, Millis(50), Millis(4), 0.1);
  Devices(1, 2);
  Push(m, At(22), 20);
  EXPECT_EQ(Ask(At(10)), Launch(m, 8, 0));
  EXPECT_EQ(Ask(At(13)), Launch(m, 5, 0));
}

// Beside a fully used device the first parameters say: x = 0.5 * 5 * 0.15 for the half that meet()
// counts on, I = 0.3 * 2^x - 0.3 = 0.089, so 8 take 13.07 ms and 7 take 11.98.
TEST_F(StraitTest, CountsOnHalfOfWhatTheDeviceIsDoing) {
  const auto busy = Model(kHigh, Millis(900), Millis(500), 1);
  const auto m = Model(kHigh, Millis(50), Millis(4), 0.1);
  Devices(1, 2);
  Push(busy, At(800));
  Launched(Launch(busy, 1, 0), At(0));
  Push(m, At(23), 8);
  EXPECT_EQ(Ask(At(10)), Launch(m, 7, 0));
  Launched(Launch(m, 7, 0), At(10));
}

TEST_F(StraitTest, ARequestsOwnPriorityGoesBeforeThatOfItsModel) {
  const auto high = Model(kHigh, Millis(900), Millis(9), 0.3);
  const auto low = Model(kLow, Millis(900), Millis(9), 0.3);
  Devices(1, 1);
  Push(high, At(800));
  PushOwn(low, At(900), kHigh);
  EXPECT_EQ(Ask(At(0)), Launch(high, 1, 0)) << "of one level, and due first";
  table_.Pop(*policy_, TableForTest::M(high), 1);
  PushOwn(high, At(800), kLow + 7);
  EXPECT_EQ(Ask(At(0)), Launch(low, 1, 0)) << "below every model's level, though due first";
}

// The low queue's first four are due so early that a batch of two is all that is in time; a third
// would be late. 0.4 of everything beside 0.4 of low priority is more than the cap of 0.75.
TEST_F(StraitTest, ABatchHasNoPriorityOfRequestsThatItDoesNotHold) {
  Model(kHigh, Millis(900), Millis(9), 0.1);
  const auto busy = Model(kLow, Millis(9000), Millis(500), 0.4);
  const auto low = Model(kLow, Millis(900), Millis(4), 0.4);
  Devices(1, 4, {.starve = Seconds(100), .protects = false});
  Push(busy, At(8000));
  Launched(Launch(busy, 1, 0), At(0));
  Push(low, At(7), 4);
  ASSERT_TRUE(Waits(Ask(At(0))));
  PushOwn(low, At(900), kHigh);
  EXPECT_TRUE(Waits(Ask(At(0)))) << "the urgent one would not be in the batch";
  table_.Pop(*policy_, TableForTest::M(low), 3);
  EXPECT_EQ(Ask(At(0)), Launch(low, 2, 0)) << "now it is, and the batch is not under the cap";
}

// The first takes 101 ms alone; with 1 ms to spare it bears no neighbour of its level or below, and
// a higher one may come all the same.
TEST_F(StraitTest, ProtectsRunningBatchesOfEqualOrHigherPriority) {
  const auto first = Model(kLow, Millis(102), Millis(100), 0.5);
  const auto equal = Model(kLow, Millis(200), Millis(1), 0.2);
  const auto high = Model(kHigh, Millis(90), Millis(1), 0.2);
  Devices(1, 4);
  Push(first, At(102));
  Launched(Launch(first, 1, 0), At(0));
  Push(equal, At(200));
  // 0.2 of everything beside it: I = 0.3 (2^0.15 - 1) = 0.033, 101 ms become 104.3.
  EXPECT_TRUE(Waits(Ask(At(0))));
  Push(high, At(90));
  Launched(Launch(high, 1, 0), At(0));
  // Now it will be late whatever is done: it forbids nothing any more.
  EXPECT_EQ(Ask(At(0)), Launch(equal, 1, 0));
}

// What is done is done: near its end the same batch bears the same neighbour.
TEST_F(StraitTest, CountsTheWorkThatIsDone) {
  const auto first = Model(kLow, Millis(102), Millis(100), 0.5);
  const auto equal = Model(kLow, Millis(200), Millis(1), 0.2);
  Devices(1, 4);
  Push(first, At(102));
  Launched(Launch(first, 1, 0), At(0));
  Push(equal, At(200));
  EXPECT_TRUE(Waits(Ask(At(60)))) << "41 ms become 42.3";
  EXPECT_EQ(Ask(At(75)), Launch(equal, 1, 0)) << "26 ms become 26.9";
}

// Of five levels the fourth may not disturb the third, and may disturb the fifth.
TEST_F(StraitTest, ProtectsEachOfManyLevelsFromThoseBelowIt) {
  constexpr int kThird = 6;  // priorities need not be dense
  Model(kHigh, Millis(50), Millis(1), 0.1);
  Model(kLow, Millis(50), Millis(1), 0.1);
  const auto third = Model(kThird, Millis(102), Millis(100), 0.2);
  const auto fourth = Model(kThird + 1, Millis(200), Millis(1), 0.2);
  const auto fifth = Model(kThird + 9, Millis(102), Millis(100), 0.2);
  for (const auto& [running, may] : {std::pair{third, false}, {fifth, true}}) {
    Devices(1, 4);
    Push(running, At(102));
    Launched(Launch(running, 1, 0), At(0));
    Push(fourth, At(200));
    EXPECT_EQ(std::holds_alternative<Dispatch>(Ask(At(0))), may);
    table_.Pop(*policy_, TableForTest::M(fourth), 1);
    table_.lanes.clear();
  }
}

// The second, third and fourth level share the one cap.
TEST_F(StraitTest, AllLevelsButTheHighestAreUnderTheCapTogether) {
  const auto first = Model(kHigh, Millis(9000), Millis(10), 0.3);
  const auto second = Model(kLow, Millis(9000), Millis(10), 0.3);
  const auto third = Model(kLow + 1, Millis(9000), Millis(10), 0.3);
  const auto fourth = Model(kLow + 2, Millis(9000), Millis(10), 0.3);
  Devices(1, 8, {.starve = Seconds(100), .protects = false});
  for (const auto m : {fourth, third, second}) Push(m, At(8000));
  Launched(Launch(second, 1, 0), At(0));
  Launched(Launch(third, 1, 0), At(0));
  EXPECT_TRUE(Waits(Ask(At(0)))) << "0.9 is more than 0.75";
  Push(first, At(8000), 2);
  EXPECT_EQ(Ask(At(0)), Launch(first, 2, 0)) << "the highest level is not under it";
}

// Deeper levels than the predictor has coefficients share the last.
TEST_F(StraitTest, PredictsForMoreLevelsThanItHasCoefficients) {
  for (int priority = 1; priority <= kStraitLevels + 4; ++priority) {
    Model(priority, Millis(900), Millis(9), 0.01);
  }
  Devices(1, kStraitLevels + 4, {.capped = false});
  for (std::size_t m = 0; m < kStraitLevels + 4; ++m) Push(m, At(900));
  for (std::size_t m = 0; m < kStraitLevels + 4; ++m) Launched(Launch(m, 1, 0), At(0));
}

TEST_F(StraitTest, KeepsLowLevelsUnderTheCapUntilItRises) {
  Model(kHigh, Millis(50), Millis(10), 0.1);
  const auto a = Model(kLow, Millis(9000), Millis(10), 0.4);
  const auto b = Model(kLow, Millis(9000), Millis(10), 0.4);
  Devices(1, 4, {.starve = Seconds(100), .protects = false});
  Push(a, At(8000));
  Push(b, At(8000));
  Launched(Launch(a, 1, 0), At(0));
  EXPECT_TRUE(Waits(Ask(At(0)))) << "0.8 is more than 0.75";
  EXPECT_TRUE(Waits(Ask(At(1999)))) << "the cap is 0.7975";
  EXPECT_EQ(Ask(At(2100)), Launch(b, 1, 0)) << "the cap is 0.8025";
}

TEST_F(StraitTest, TheCapFallsWhenTheHighestLevelMisses) {
  const auto high = Model(kHigh, Millis(50), Millis(9), 0.1);
  Model(kLow, Millis(50), Millis(9), 0.1);
  Devices(1, 4);
  Push(high, At(5010));
  Launched(Launch(high, 1, 0), At(5000));
  EXPECT_DOUBLE_EQ(policy_->Cap(At(5000)), 0.875);
  Done(0, 0, At(5000), At(5020));
  Ask(At(5020));
  EXPECT_DOUBLE_EQ(policy_->Cap(At(5020)), 0.75);
  // A request given up is a miss too.
  Push(high, At(9000));
  EXPECT_EQ(Ask(At(8999)), GiveUp(high, 1, DropReason::kExpired));
  EXPECT_DOUBLE_EQ(policy_->Cap(At(8999)), 0.75);
}

// The cap is 0.875 until it falls to 0.75.
TEST_F(StraitTest, WhatIsGivenUpCountsWithItsOwnPriority) {
  const auto high = Model(kHigh, Millis(900), Millis(9), 0.1);
  const auto low = Model(kLow, Millis(900), Millis(9), 0.1);
  for (const bool by_the_policy : {true, false}) {
    for (const auto& [m, own, falls] : {std::tuple{low, kHigh, true}, {high, kLow + 7, false}}) {
      SCOPED_TRACE(testing::Message() << "priority " << own << ", by the policy " << by_the_policy);
      table_.lanes.clear();
      Devices(1, 4);
      PushOwn(m, by_the_policy ? At(5005) : At(5900), own);
      if (by_the_policy) {
        EXPECT_EQ(Ask(At(5000)), GiveUp(m, 1, DropReason::kExpired));
      }
      table_.Pop(*policy_, TableForTest::M(m), 1);
      EXPECT_TRUE(Waits(Ask(At(5000))));
      EXPECT_DOUBLE_EQ(policy_->Cap(At(5000)), falls ? 0.75 : 0.875);
    }
  }
}

// Else a model that needs more than the cap would never run.
TEST_F(StraitTest, ALowBatchAloneAmongLowOnesMayExceedTheCap) {
  const auto high = Model(kHigh, Millis(900), Millis(9), 0.2);
  const auto heavy = Model(kLow, Millis(900), Millis(9), 0.95);
  Devices(1, 4);
  Push(high, At(900));
  Launched(Launch(high, 1, 0), At(0));
  Push(heavy, At(900));
  EXPECT_EQ(Ask(At(0)), Launch(heavy, 1, 0));
}

TEST_F(StraitTest, ChoosesTheDeviceWithTheLeastEstimate) {
  const auto m = Model(kHigh, Millis(90), Millis(9), 0.5);
  Devices(3, 2);
  Push(m, At(80), 1);
  Launched(Launch(m, 1, 0), At(0));
  Push(m, At(80), 1);
  Launched(Launch(m, 1, 1), At(0));
  Push(m, At(80), 1);
  Launched(Launch(m, 1, 2), At(0));
  Done(1, 0, At(0), At(9));
  Push(m, At(80), 1);
  EXPECT_EQ(Ask(At(9)), Launch(m, 1, 1));
}

// Eq. 2: the link is busy until 40, so the second estimate is 40 + 11 and no deadline before 51 can
// be met there.
TEST_F(StraitTest, WaitsForTheLink) {
  transfer_ = Millis(40);
  const auto large = Model(kHigh, Millis(200), Millis(99), 0.1);
  transfer_ = Millis(1);
  const auto small = Model(kHigh, Millis(200), Millis(10), 0);
  Devices(1, 2, {.protects = false});
  Push(large, At(200));
  Launched(Launch(large, 1, 0), At(0));
  Push(small, At(50));
  EXPECT_TRUE(Waits(Ask(At(0))));
  table_.Pop(*policy_, TableForTest::M(small), 1);
  Push(small, At(53));
  EXPECT_EQ(Ask(At(0)), Launch(small, 1, 0));
}

// The high batch below always has too little to spare for any neighbour, and the next one is ready
// when it ends: without the bound the low queue would wait for ever.
TEST_F(StraitTest, NobodyStarves) {
  const auto high = Model(kHigh, Millis(12), Millis(10), 0.6);
  const auto low = Model(kLow, Seconds(100), Millis(10), 0.6);
  const auto lower = Model(kLow + 1, Seconds(100), Millis(10), 0.6);
  Devices(1, 2, {.starve = Millis(200)});
  TimePoint now = At(0);
  std::array<std::vector<TimePoint>, 2> served;
  Push(high, now + Millis(11));
  CarryOut(Launch(high, 1, 0), now);
  for (int i = 0; i < 200; ++i) {
    Push(low, At(90'000));
    Push(lower, At(90'000));
    for (;;) {
      const Decision decision = Ask(now);
      if (Waits(decision)) break;
      if (const auto* drop = std::get_if<Drop>(&decision)) {
        table_.Pop(*policy_, drop->model, drop->count);
        continue;
      }
      const auto& d = std::get<Dispatch>(decision);
      if (d.model.value() != high) {
        served[d.model.value() - low].push_back(now);
        EXPECT_EQ(d.batch, 1);
      }
      CarryOut(decision, now);
    }
    // Everything ends after 11 ms, and one more of the high ones comes as it does.
    now += Millis(11);
    while (!table_.lanes[0].batches.empty()) Done(0, 0, now - Millis(11), now);
    Push(high, now + Millis(11));
  }
  for (const auto& times : served) {
    ASSERT_GE(times.size(), 8u);
    TimePoint before = At(0);
    for (const TimePoint at : times) {
      EXPECT_LE(at - before, Millis(200) + 2 * Millis(11));
      before = at;
    }
  }
}

// What was lost long ago gives no right to disturb others now.
TEST_F(StraitTest, HungerIsForgottenWhenNothingHasWaitedForLong) {
  const auto high = Model(kHigh, Millis(102), Millis(100), 0.5);
  const auto low = Model(kLow, Seconds(100), Millis(1), 0.2);
  for (const Duration idle : {Millis(199), Seconds(60)}) {
    Devices(1, 2, {.starve = Millis(200)});
    Push(low, At(1));
    ASSERT_EQ(Ask(At(0)), GiveUp(low, 1, DropReason::kExpired));
    table_.Pop(*policy_, TableForTest::M(low), 1);
    EXPECT_TRUE(Waits(Ask(At(0))));
    const TimePoint now = At(0) + idle;
    Push(high, now + Millis(102));
    Launched(Launch(high, 1, 0), now);
    Push(low, now + Seconds(90));
    EXPECT_TRUE(Waits(Ask(now))) << "the high one has 1 ms to spare";
    // Soon after the loss its hunger goes on; else it begins anew.
    const Decision later = Ask(now + Millis(1));
    EXPECT_EQ(Waits(later), idle > Millis(200));
    Launched(Launch(low, 1, 0), now + Millis(200));
    table_.lanes.clear();
  }
}

// The hungriest waits for the only lane that serves it; that is no reason for others to starve.
TEST_F(StraitTest, FeedsTheHungriestThatHasALaneToGoTo) {
  const auto high = Model(kHigh, Millis(102), Millis(100), 0.5);
  const auto hungriest = Model(kLow, Seconds(100), Millis(1), 0.2);
  const auto other = Model(kLow, Seconds(100), Millis(1), 0.2);
  Devices(2, 2, {.starve = Millis(20)});
  const auto serve = [&](std::size_t lane, std::vector<std::size_t> models) {
    ModelSet set = ModelSet::None(table_.models.size());
    for (const std::size_t m : models) set.Insert(TableForTest::M(m));
    table_.lanes[lane].serves = set;
  };
  serve(0, {hungriest});
  table_.lanes[0].open = false;
  serve(1, {high, other});
  Push(hungriest, At(90'000));
  EXPECT_TRUE(Waits(Ask(At(0))));
  Push(high, At(112));
  Launched(Launch(high, 1, 1), At(10));
  Push(other, At(90'000));
  EXPECT_TRUE(Waits(Ask(At(10)))) << "the high one has 1 ms to spare";
  EXPECT_EQ(Ask(At(31)), Launch(other, 1, 1));
}

// Formation, with a device that somebody fills: a full batch takes 12 ms, so that a first request
// with a slack of 1.5 goes 18 ms before its deadline at the latest.
class StraitFormationTest : public StraitTest {
 protected:
  void Fill(double share, StraitOptions options, int slots = 3) {
    const auto busy = Model(kHigh, Millis(900), Millis(500), share);
    m_ = Model(kHigh, Millis(100), Millis(4), 0.2);
    Devices(1, slots);
    options.protects = false;
    options.interference.learn = false;
    policy_ = std::make_unique<Strait>("strait", options);
    policy_->Prepare(table_.view());
    Push(busy, At(900));
    CarryOut(Launch(busy, 1, 0), At(0));
  }
  std::size_t m_ = 0;
};

TEST_F(StraitFormationTest, WaitsWhileTheDeviceIsFullButNotTooLong) {
  Fill(0.9, {.formation = 0.2});
  Push(m_, At(100));
  EXPECT_EQ(Ask(At(0)), Decision(Wait{At(20)}));
  EXPECT_EQ(Ask(At(20)), Launch(m_, 1, 0));
  Push(m_, At(101), 7);
  EXPECT_EQ(Ask(At(2)), Launch(m_, 8, 0)) << "full";
}

TEST_F(StraitFormationTest, GoesAtOnceWhereTheDeviceHasRoom) {
  Fill(0.79, {.formation = 0.2});
  Push(m_, At(100));
  EXPECT_EQ(Ask(At(0)), Launch(m_, 1, 0));
}

TEST_F(StraitFormationTest, TheLastSlotIsNoRoomHoweverLittleTheDeviceDoes) {
  Fill(0.1, {.formation = 0.2}, 2);
  Push(m_, At(100));
  EXPECT_EQ(Ask(At(0)), Decision(Wait{At(20)}));
}

TEST_F(StraitFormationTest, GoesWhenRoomAppearsIfOnlyInTheOnlySlot) {
  Fill(0.9, {.formation = 0.2}, 1);
  Push(m_, At(100));
  EXPECT_EQ(Ask(At(1)), Decision(Wait{At(20)}));
  Done(0, 0, At(0), At(3));
  EXPECT_EQ(Ask(At(3)), Launch(m_, 1, 0));
}

TEST_F(StraitFormationTest, KeepsTheSlackOfTheFirstRequest) {
  Fill(0.9, {.formation = 0.9});
  Push(m_, At(100));
  EXPECT_EQ(Ask(At(0)), Decision(Wait{At(82)}));
  EXPECT_EQ(Ask(At(82)), Launch(m_, 1, 0));
}

TEST_F(StraitFormationTest, WithoutSlackNobodyWaits) {
  Fill(0.9, {.formation = 0.9, .slack = 8.5});
  Push(m_, At(100));
  EXPECT_EQ(Ask(At(0)), Launch(m_, 1, 0)) << "8.5 times 12 ms are more than the 100";
}

TEST_F(StraitTest, CountsHowFarItsPredictionsAreOff) {
  const auto m = Model(kHigh, Millis(900), Millis(99), 0.5);
  Devices(1, 2);
  Push(m, At(900), 1);
  Launched(Launch(m, 1, 0), At(0));
  Done(0, 0, At(0), At(150));
  EXPECT_EQ(policy_->prediction_errors()->kernel.count(), 0) << "it was alone";
  for (int i = 0; i < 2; ++i) {
    Push(m, At(900), 1);
    Launched(Launch(m, 1, 0), At(200));
  }
  Done(0, 0, At(200), At(400));
  // Beside 0.5 of everything for all its time: D = 1 + 0.3 (2^0.375 - 1) = 1.089, it took 2.
  const PredictionErrors& errors = *policy_->prediction_errors();
  EXPECT_EQ(errors.kernel.count(), 1);
  EXPECT_NEAR(errors.kernel.Percentile(50), (1.089 - 2) / 2, 0.002);
  EXPECT_NEAR(errors.overhead.Percentile(50), 1, 0.002);
  EXPECT_NEAR(errors.newest.predicted, 1.089, 0.001);
  EXPECT_DOUBLE_EQ(errors.newest.actual, 2);
  // It arrived at 0 and ended at 400; launched at 200, it was expected at 308.9.
  EXPECT_NEAR(errors.latency.Percentile(50), (308.9 - 400) / 400, 0.002);
}

}  // namespace
}  // namespace tactus
