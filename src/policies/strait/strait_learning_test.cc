// What a batch that ended teaches Strait. Without these one that failed at once, or was stopped
// half way, would make the predictor believe that neighbours speed a batch up, move the link's
// clock, or take from low priority what no deadline was missed for; and lower batches would join
// one that does not bear them in the tail.

#include <memory>
#include <variant>

#include <gtest/gtest.h>

#include "core/batch.h"
#include "core/prediction_errors.h"
#include "policies/strait/strait.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

// Two models that use half of everything, of 10 ms of which 2 on the link, side by side; the first
// is of the highest level and its deadline is at 15 ms.
class StraitLearningTest : public ::testing::Test {
 protected:
  StraitLearningTest() : policy_("strait", {}) {
    for (const int priority : {1, 2}) {
      table_.AddModel(Millis(50), Millis(9), Millis(1), 1);
      table_.models.back().priority = priority;
      table_.rows.back().use.assign(1, ResourceUse{{0.5, 0.5, 0.5, 0.5, 0.5}, Millis(2)});
    }
    table_.profile = ProfileTable(1, table_.rows);
    table_.AddLanes(1);
    Lane& lane = table_.lanes[0];
    lane.slots = 2;
    lane.batches = FixedVector<RunningBatch>(2);
    policy_.Prepare(table_.view());
    Began(1, 0, At(15));
    Began(2, 1, At(50));
  }
  void Began(std::uint64_t id, std::uint32_t model, TimePoint deadline) {
    table_.lanes[0].batches.push_back({BatchId{id}, ModelId{model}, ExitId{0}, 1, At(0), At(10),
                                       deadline, static_cast<int>(model) + 1});
    policy_.OnLaneChange(table_.lanes[0]);
  }
  // The first ends as `status` at 20 ms: 16 ms on its kernels, beyond its deadline.
  void End(BatchStatus status) {
    Lane& lane = table_.lanes[0];
    const RunningBatch batch = lane.batches[0];
    lane.batches.SwapErase(0);
    policy_.OnBatchDone(lane.id, batch,
                        {.started = At(0), .ended = At(20), .status = status, .upload = Millis(4)},
                        At(20));
    policy_.OnLaneChange(lane);
    policy_.Decide(table_.view(), At(20));  // books what was missed
  }
  std::int64_t steps() const { return policy_.Learned()->steps; }

  TableForTest table_;
  Strait policy_;
};

TEST_F(StraitLearningTest, ABatchThatRanTeachesThePredictorAndTheCap) {
  End(BatchStatus::kOk);
  EXPECT_EQ(steps(), 1);
  const PredictionErrors& errors = *policy_.prediction_errors();
  EXPECT_EQ(errors.kernel.count(), 1);
  EXPECT_DOUBLE_EQ(errors.newest.actual, 2) << "16 ms for 8";
  EXPECT_DOUBLE_EQ(policy_.Cap(At(20)), 0.75);
  EXPECT_DOUBLE_EQ(policy_.Cap(At(119)), 0.75) << "it rises from the miss on";
  EXPECT_DOUBLE_EQ(policy_.Cap(At(120)), 0.7525);
}

TEST_F(StraitLearningTest, OneThatFailedOrWasStoppedTeachesNothing) {
  for (const BatchStatus status :
       {BatchStatus::kFailed, BatchStatus::kAborted, BatchStatus::kLost}) {
    SCOPED_TRACE(static_cast<int>(status));
    const LearnedState before = *policy_.Learned();
    End(status);
    EXPECT_EQ(*policy_.Learned(), before);
    EXPECT_EQ(policy_.prediction_errors()->kernel.count(), 0);
    EXPECT_DOUBLE_EQ(policy_.Cap(At(100)), 0.7525) << "it rises from the start on";
    Began(3 + static_cast<std::uint64_t>(status), 0, At(15));
    std::swap(table_.lanes[0].batches[0], table_.lanes[0].batches[1]);
  }
}

// Two slots and models of a high, a high and a low level, 10 ms and half of everything each. One
// of them beside a batch for all its time is expected to make 10.9 ms of its 10. The predictor
// stays as it is.
class StraitTailTest : public ::testing::Test {
 protected:
  void Start(double quantile) {
    for (const int priority : {1, 1, 2}) {
      table_.AddModel(Millis(900), Millis(9), Millis(1), 1);
      table_.models.back().priority = priority;
      table_.rows.back().use.assign(1, ResourceUse{{0.5, 0.5, 0.5, 0.5, 0.5}, Duration{}});
    }
    table_.profile = ProfileTable(1, table_.rows);
    table_.AddLanes(1);
    table_.lanes[0].slots = 2;
    table_.lanes[0].batches = FixedVector<RunningBatch>(2);
    policy_ = std::make_unique<Strait>("strait", StraitOptions{.interference = {.rate = 0},
                                                               .formation = 0,
                                                               .tail_quantile = quantile,
                                                               .starve = Seconds(100),
                                                               .meets = false});
    policy_->Prepare(table_.view());
  }
  void Began(std::uint32_t model, TimePoint now, TimePoint deadline) {
    table_.lanes[0].batches.push_back({BatchId{table_.next_id++}, ModelId{model}, ExitId{0}, 1, now,
                                       now + Millis(10), deadline, model < 2 ? 1 : 2});
    policy_->OnLaneChange(table_.lanes[0]);
  }
  void End(TimePoint started, TimePoint now) {
    Lane& lane = table_.lanes[0];
    const RunningBatch batch = lane.batches[0];
    lane.batches.SwapErase(0);
    policy_->OnBatchDone(lane.id, batch, {.started = started, .ended = now}, now);
    policy_->OnLaneChange(lane);
  }
  // A hundred pairs of batches that take twice as long for each other, all in time.
  void LiveBadly() {
    for (int i = 0; i < 100; ++i) {
      const TimePoint now = At(100 * i);
      for (const std::uint32_t m : {0, 1}) Began(m, now, now + Millis(90));
      for (int ended = 0; ended < 2; ++ended) End(now, now + Millis(20));
    }
  }
  // May the model join a high one that has 12 ms for its 10?
  bool MayJoin(std::uint32_t model, TimePoint now) {
    Began(0, now, now + Millis(12));
    table_.Push(*policy_, model, now + Millis(900));
    const bool may = std::holds_alternative<Dispatch>(policy_->Decide(table_.view(), now));
    table_.Pop(*policy_, ModelId{model}, 1);
    End(now, now + Millis(10));
    return may;
  }

  TableForTest table_;
  std::unique_ptr<Strait> policy_;
};

TEST_F(StraitTailTest, LowerBatchesJoinOnlyWhatBearsThemInTheTail) {
  Start(0.999);
  EXPECT_TRUE(MayJoin(2, At(0))) << "10.9 ms are expected, and there was no tail yet";
  LiveBadly();
  EXPECT_GT(policy_->tail(), 3);
  EXPECT_FALSE(MayJoin(2, At(20'000))) << "one in the tail takes more than 12.6";
  EXPECT_TRUE(MayJoin(1, At(20'100))) << "among equals what is expected counts";
}

TEST_F(StraitTailTest, WithoutItWhatIsExpectedCountsForAll) {
  Start(0);
  LiveBadly();
  EXPECT_TRUE(MayJoin(2, At(20'000)));
}

}  // namespace
}  // namespace tactus
