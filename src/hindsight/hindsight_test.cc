#include "hindsight/hindsight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr ModelId kModel{0};

// One lane and one model of two exits: a batch of b takes 4 + 2 b ms at the first, twice that at
// the second. Requests have 20 ms.
class HindsightTest : public ::testing::Test {
 protected:
  HindsightTest() {
    auto served = std::make_shared<ServedModels>();
    served->models = {{.name = "m",
                       .slo = Millis(20),
                       .max_batch = 4,
                       .exits = {{.name = "first"}, {.name = "last"}}}};
    ProfileTable::ModelRows rows{.exits = 2, .max_batch = 4};
    for (const int times : {1, 2}) {
      for (int b = 1; b <= 4; ++b) rows.latency.push_back(Millis(times * (4 + 2 * b)));
    }
    served->profile = ProfileTable(1, {&rows, 1});
    hindsight_.Configured(served);
  }

  static TimePoint At(int ms) { return kStart + Millis(ms); }

  static Request Came(std::uint64_t id, int at_ms, int had_ms = 20) {
    return {.id = RequestId{id}, .arrival = At(at_ms), .deadline = At(at_ms + had_ms)};
  }

  // They run together from one instant to another.
  void Run(std::vector<Request> requests, int exit, int from_ms, int to_ms,
           BatchStatus status = BatchStatus::kOk) {
    const int rows = static_cast<int>(requests.size());
    const Batch batch{.id = BatchId{next_++},
                      .model = kModel,
                      .exit = ExitId{static_cast<ExitId::rep>(exit)},
                      .lane = LaneId{0},
                      .start = At(from_ms),
                      .expected_end = At(from_ms + (exit + 1) * (4 + 2 * rows)),
                      .requests = requests};
    const BatchReport report{.started = At(from_ms), .ended = At(to_ms), .status = status};
    hindsight_.Launched(batch);
    hindsight_.Finished(batch.id, report);
    hindsight_.Answered(batch, report);
  }

  MissCause CauseOfTheWorst() {
    hindsight_.Conclude();
    return hindsight_.Worst(1, "").at(0).cause;
  }
  std::string Text() { return TextOf(hindsight_.Worst(1, "").at(0), hindsight_); }

  Hindsight hindsight_{{LaneSpec{}}};
  std::uint64_t next_ = 0;
};

TEST_F(HindsightTest, WhatWasInTimeIsCountedAndNoMiss) {
  Run({Came(1, 0), Came(2, 0)}, 1, 0, 16);
  hindsight_.Conclude();
  EXPECT_EQ(hindsight_.models().at("m").in_time, 2u);
  EXPECT_TRUE(hindsight_.Worst(9, "").empty());
}

// Without this, one stall of the machine reads as a wrong profile.
TEST_F(HindsightTest, AProfileIsWrongWhereMostBatchesAreSlow) {
  for (int i = 0; i < 3; ++i) Run({Came(1, 100 * i)}, 0, 100 * i, 100 * i + 6);
  Run({Came(9, 400)}, 0, 400, 440);
  hindsight_.Conclude();
  EXPECT_THAT(TextOf(hindsight_.models()),
              HasSubstr("as 1 of its 4 batches did: something else held the machine then"));
  EXPECT_THAT(TextOf(hindsight_.models()), Not(HasSubstr("profile")));
}

TEST_F(HindsightTest, WhereMostBatchesAreSlowTheProfileIsToBeMeasured) {
  for (int i = 0; i < 3; ++i) Run({Came(1, 100 * i)}, 0, 100 * i, 100 * i + 40);
  hindsight_.Conclude();
  EXPECT_THAT(TextOf(hindsight_.models()),
              HasSubstr("as 3 of its 3 batches did: measure the profile again"));
}

TEST_F(HindsightTest, ABatchMayHaveBeenTooLarge) {
  Run({Came(1, 0), Came(2, 7), Came(3, 7), Came(4, 7)}, 1, 7, 31);
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kBatch) << "alone it ends after 19 ms";
  EXPECT_THAT(Text(), AllOf(HasSubstr("request 1 of 'm' came at 0.000000 s and had 20.000 ms: "
                                      "late by 11.000 ms"),
                            HasSubstr("in a batch of 4 at exit last"),
                            HasSubstr("a smaller batch; a deadline after 31.000 ms or later")));
  EXPECT_EQ(hindsight_.models().at("m").late, 4u);
}

TEST_F(HindsightTest, AnEarlierExitMayHaveDone) {
  Run({Came(1, 0)}, 1, 10, 22);
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kExit);
}

TEST_F(HindsightTest, ARunMayHaveTakenLongerThanExpected) {
  Run({Came(1, 0)}, 0, 10, 25);
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kSlowRun);
  EXPECT_THAT(Text(), HasSubstr("a run as quick as expected, 6.000 ms"));
}

TEST_F(HindsightTest, NothingHelpsWhatHadLessTimeThanItTakes) {
  hindsight_.GivenUp(kModel, Came(1, 0, 5), DropReason::kExpired, At(0));
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kTooShort);
  EXPECT_THAT(Text(), HasSubstr("what would have saved it: a deadline after 6.000 ms or later\n"));
}

TEST_F(HindsightTest, WhoWaitedForABusyLaneWouldHaveNeededAnother) {
  Run({Came(1, 0), Came(2, 0), Came(3, 0)}, 1, 0, 20);
  hindsight_.GivenUp(kModel, Came(4, 1), DropReason::kShed, At(16));
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kBusy);
  EXPECT_THAT(Text(), AllOf(HasSubstr("shed after 15.000 ms"), HasSubstr("100 % of the lanes'"),
                            HasSubstr("1 batch   with    3 rows, 15.000 ms"),
                            HasSubstr("an idle lane: there it takes 12.000 ms; "),
                            Not(HasSubstr("priority"))));
  EXPECT_THAT(TextOf(hindsight_.models()),
              AllOf(HasSubstr("of the 1 of 'm' that were not in time"),
                    HasSubstr("1  100 %  waited while all lanes were busy")));
}

// Otherwise nobody sees that the server put others first because it was told to.
TEST_F(HindsightTest, WhoWaitedForAHigherPriorityIsTold) {
  Request urgent = Came(1, 0);
  urgent.priority = 1;
  Request other = Came(2, 1), equal = Came(3, 1);
  other.priority = equal.priority = 2;
  Run({urgent}, 1, 0, 12);
  Run({equal}, 0, 12, 18);
  hindsight_.GivenUp(kModel, other, DropReason::kExpired, At(16));
  hindsight_.Conclude();
  EXPECT_THAT(Text(), HasSubstr("  73 % of that was of higher priority than its own, 2\n"));
}

TEST_F(HindsightTest, WhoWaitedBesideAnIdleLaneIsTold) {
  Run({Came(1, 0)}, 0, 0, 2);
  hindsight_.GivenUp(kModel, Came(2, 1), DropReason::kExpired, At(18));
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kWaited);
  EXPECT_THAT(Text(), HasSubstr("6 % of the lanes'"));
}

// Without this an operator is told of idle lanes while there is none.
TEST_F(HindsightTest, LanesThatHaveGoneAreNotIdle) {
  hindsight_.LaneOpened(LaneId{0}, false, At(0));
  hindsight_.GivenUp(kModel, Came(1, 1), DropReason::kExpired, At(18));
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kNoLane);
  EXPECT_THAT(Text(), HasSubstr("a lane that runs batches"));
}

TEST_F(HindsightTest, NorIsALaneThatHasLostTheModel) {
  hindsight_.LaneHolds(LaneId{0}, ModelId{1}, false, At(0));
  hindsight_.GivenUp(kModel, Came(1, 1), DropReason::kExpired, At(18));
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kWaited) << "it was another model";
  hindsight_.LaneHolds(LaneId{0}, kModel, false, At(20));
  hindsight_.GivenUp(kModel, Came(2, 21, 18), DropReason::kExpired, At(39));
  hindsight_.Conclude();
  EXPECT_EQ(hindsight_.models().at("m").causes[static_cast<std::size_t>(MissCause::kNoLane)], 1u);
}

TEST_F(HindsightTest, TheTimeOfLanesThatHaveGoneIsNotCounted) {
  Hindsight hindsight({LaneSpec{}, LaneSpec{}});
  auto served = std::make_shared<ServedModels>();
  const ProfileTable::ModelRows rows{.exits = 1, .max_batch = 1, .latency = {Millis(6)}};
  served->models = {{.name = "m", .slo = Millis(20), .max_batch = 1, .exits = {{.name = "last"}}}};
  served->profile = ProfileTable(1, {&rows, 1});
  hindsight.Configured(served);
  hindsight.LaneOpened(LaneId{1}, false, At(0));
  const std::vector<Request> first{{.id = RequestId{1}, .arrival = At(0), .deadline = At(40)}};
  const Batch batch{.id = BatchId{1},
                    .model = kModel,
                    .exit = ExitId{0},
                    .lane = LaneId{0},
                    .start = At(0),
                    .expected_end = At(30),
                    .requests = first};
  hindsight.Launched(batch);
  const Request other{.id = RequestId{2}, .arrival = At(1), .deadline = At(21)};
  hindsight.GivenUp(kModel, other, DropReason::kExpired, At(18));
  hindsight.Finished(batch.id, {.started = At(0), .ended = At(30)});
  hindsight.Conclude();
  EXPECT_EQ(hindsight.Worst(1, "").at(0).cause, MissCause::kBusy);
}

TEST_F(HindsightTest, FailuresFullQueuesAndModelsThatWentAreThemselvesTheReason) {
  Run({Came(1, 0)}, 0, 0, 6, BatchStatus::kFailed);
  EXPECT_EQ(CauseOfTheWorst(), MissCause::kFailed);
  EXPECT_THAT(Text(), AllOf(HasSubstr(": failed\n"), Not(HasSubstr("would have saved"))));
  EXPECT_EQ(hindsight_.models().at("m").failed, 1u);
  hindsight_.GivenUp(kModel, Came(2, 0), DropReason::kQueueFull, At(0));
  hindsight_.GivenUp(kModel, Came(3, 0), DropReason::kUnloaded, At(0));
  hindsight_.GivenUp(kModel, Came(4, 0), DropReason::kCancelled, At(0));
  EXPECT_EQ(hindsight_.models().at("m").shed, 2u) << "who took it back did not miss it";
}

}  // namespace
}  // namespace tactus
