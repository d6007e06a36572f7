// The rivals' limits as tables of states: without them a comparison would be with something else.
#include "policies/sharing/sharing.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <variant>

#include <gtest/gtest.h>

#include "core/batch.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

class SharingTest : public ::testing::Test {
 protected:
  void Use(SharingRule rule, int lanes = 1, int slots = 4) {
    for (int m = 0; m < 2; ++m) {
      table_.AddModel(Millis(500), Millis(4), Millis(1), 8);
      table_.models.back().priority = m + 1;
    }
    table_.AddLanes(lanes);
    for (Lane& lane : table_.lanes) {
      lane.slots = slots;
      lane.batches = FixedVector<RunningBatch>(slots);
    }
    policy_ = std::make_unique<Sharing>("sharing", SharingOptions{.rule = rule, .formation = 0});
    policy_->Prepare(table_.view());
  }
  // Launches batches of single requests of the models given, as long as the policy lets them in.
  int Admitted(std::initializer_list<std::size_t> models, TimePoint now) {
    int admitted = 0;
    for (const std::size_t m : models) {
      table_.Push(*policy_, m, now + Millis(400));
      const Decision decision = policy_->Decide(table_.view(), now);
      if (const auto* d = std::get_if<Dispatch>(&decision)) {
        table_.CarryOut(*policy_, *d, now);
        ++admitted;
      } else {
        table_.Pop(*policy_, TableForTest::M(m), 1);
      }
    }
    return admitted;
  }
  void PushOwn(std::size_t m, TimePoint deadline, std::uint32_t priority) {
    ASSERT_TRUE(table_.queues[m].Push(
        {.id = RequestId{table_.next_id++}, .deadline = deadline, .priority = priority}));
  }
  void Finish(std::size_t i, TimePoint now, TimePoint deadline,
              BatchStatus status = BatchStatus::kOk) {
    RunningBatch done = table_.lanes[0].batches[i];
    done.deadline = deadline;
    table_.lanes[0].batches.SwapErase(i);
    policy_->OnBatchDone(table_.lanes[0].id, done, BatchReport{.status = status}, now);
  }

  TableForTest table_;
  std::unique_ptr<Sharing> policy_;
};

constexpr std::size_t kHighModel = 0, kLowModel = 1;

TEST_F(SharingTest, TemporalRunsOneAtATimeOnEachDevice) {
  Use(SharingRule::kTemporal, 2);
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kHighModel}, At(0)), 2);
  EXPECT_EQ(table_.lanes[0].batches.size(), 1u);
  EXPECT_EQ(table_.lanes[1].batches.size(), 1u);
}

TEST_F(SharingTest, StaticRunsThree) {
  Use(SharingRule::kStatic);
  EXPECT_EQ(Admitted({kLowModel, kHighModel, kLowModel, kHighModel}, At(0)), 3);
}

TEST_F(SharingTest, ReactiveRunsThreeOfALevelAndFourInAll) {
  Use(SharingRule::kReactive);
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kLowModel, kLowModel}, At(0)), 3);
  EXPECT_EQ(Admitted({kHighModel, kHighModel}, At(0)), 1);
}

TEST_F(SharingTest, ReactiveAllowsFewerLowBatchesAfterEachMissUntilTheReset) {
  Use(SharingRule::kReactive);
  for (int miss = 0; miss < 5; ++miss) {
    EXPECT_EQ(Admitted({kHighModel}, At(10)), 1);
    Finish(0, At(20), At(19));
  }
  EXPECT_EQ(Admitted({kLowModel, kLowModel}, At(20)), 1) << "never fewer than one";
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kLowModel}, At(199)), 0);
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kLowModel}, At(200)), 2) << "three again";
  Finish(0, At(450), At(19));
  EXPECT_EQ(Admitted({kLowModel, kLowModel}, At(450)), 1)
      << "a low batch that is late costs nothing";
}

TEST_F(SharingTest, WhatFailedOrWasStoppedIsNoMiss) {
  Use(SharingRule::kReactive);
  for (const auto status : {BatchStatus::kFailed, BatchStatus::kAborted, BatchStatus::kLost}) {
    EXPECT_EQ(Admitted({kHighModel}, At(10)), 1);
    Finish(0, At(20), At(19), status);
  }
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kLowModel}, At(20)), 3);
}

// As for Strait: the dispatcher gives up what has expired before the policy is asked.
TEST_F(SharingTest, WhatTheDispatcherGivesUpIsAMissToo) {
  Use(SharingRule::kReactive);
  for (const std::size_t m : {kLowModel, kHighModel}) {
    table_.Push(*policy_, m, At(1));
    table_.Pop(*policy_, TableForTest::M(m), 1);
  }
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kLowModel}, At(20)), 2);
}

TEST_F(SharingTest, PreemptiveKeepsASlotForTheHighest) {
  Use(SharingRule::kPreemptive);
  EXPECT_TRUE(policy_->traits().suspends);
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kLowModel, kLowModel}, At(0)), 3);
  EXPECT_EQ(Admitted({kHighModel}, At(0)), 1);
}

// At 0 a low batch of two is all that meets the first deadlines; the urgent one comes after it.
TEST_F(SharingTest, AdmitsABatchByTheRequestsThatItHolds) {
  Use(SharingRule::kPreemptive);
  ASSERT_EQ(Admitted({kLowModel, kLowModel, kLowModel}, At(0)), 3);
  table_.Push(*policy_, kLowModel, At(6), 4);
  PushOwn(kLowModel, At(400), 1);
  EXPECT_TRUE(std::holds_alternative<Wait>(policy_->Decide(table_.view(), At(0))));
  table_.Pop(*policy_, TableForTest::M(kLowModel), 3);
  EXPECT_EQ(policy_->Decide(table_.view(), At(0)), Launch(kLowModel, 2, 0));
}

TEST_F(SharingTest, WhatIsGivenUpCountsWithItsOwnPriority) {
  Use(SharingRule::kReactive);
  const auto give_up = [&](std::size_t m, std::uint32_t priority) {
    PushOwn(m, At(1), priority);
    EXPECT_EQ(policy_->Decide(table_.view(), At(0)), GiveUp(m, 1, DropReason::kExpired));
    table_.Pop(*policy_, TableForTest::M(m), 1);
  };
  give_up(kHighModel, 9);
  give_up(kHighModel, 9);
  give_up(kLowModel, 1);
  EXPECT_EQ(Admitted({kLowModel, kLowModel, kLowModel}, At(0)), 2) << "one fewer than three";
}

TEST_F(SharingTest, AllOfThemServeTheHighestFirstAndGiveUpWhatIsLost) {
  Use(SharingRule::kStatic);
  table_.Push(*policy_, kLowModel, At(3));
  table_.Push(*policy_, kLowModel, At(100), 3);
  table_.Push(*policy_, kHighModel, At(200), 2);
  EXPECT_EQ(policy_->Decide(table_.view(), At(0)), GiveUp(kLowModel, 1, DropReason::kExpired));
  table_.Pop(*policy_, TableForTest::M(kLowModel), 1);
  EXPECT_EQ(policy_->Decide(table_.view(), At(0)), Launch(kHighModel, 2, 0));
  table_.Pop(*policy_, TableForTest::M(kHighModel), 2);
  // At 94 the first low one has 6 ms: two take that, three would be late.
  EXPECT_EQ(policy_->Decide(table_.view(), At(94)), Launch(kLowModel, 2, 0));
}

}  // namespace
}  // namespace tactus
