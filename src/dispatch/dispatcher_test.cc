// Every transition of the state machine, as transcripts in serving time. The policy is a script, so
// that each story says all that happens in it.
#include "dispatch/dispatcher.h"

#include "dispatch/dispatcher_fixture_for_test.h"

namespace tactus {
namespace {

TEST_F(DispatcherTest, CarriesARequestFromArrivalToAnswer) {
  Open({});
  Arrive(kA, 0);
  EXPECT_EQ(dispatcher_->waiting(), 1u);
  Answer(Run(kA, 1));
  EXPECT_EQ(Step(0), kNever);
  EXPECT_EQ(Said(), "launch b0 of m0: exit 1, lane 0 [1]\n");
  EXPECT_EQ(dispatcher_->waiting(), 0u);
  EXPECT_EQ(dispatcher_->running(), 1u);
  const Lane& lane = dispatcher_->view().lanes[0];
  ASSERT_EQ(lane.running().size(), 1u);
  EXPECT_EQ(lane.running()[0].expected_end, kStart + Millis(20));
  EXPECT_EQ(lane.free_at, kStart + Millis(20));
  EXPECT_FALSE(lane.HasFreeSlot());
  Finish(0, 21);
  EXPECT_EQ(Said(), "complete b0 ok [1]\n");
  EXPECT_EQ(dispatcher_->running(), 0u);
  EXPECT_TRUE(lane.HasFreeSlot());
  EXPECT_THAT(script_.heard, ::testing::ElementsAre("arrive 0/1", "pop 0 x1", "done b0 x1 0"));
}

TEST_F(DispatcherTest, AsksAgainAfterEveryDecision) {
  Open({}, {LaneSpec{}, LaneSpec{.slots = 2}});
  for (int i = 0; i < 3; ++i) Arrive(kA, 0);
  Arrive(kB, 0);
  Answer(Run(kB, 1, LaneId{1}));
  Answer(Drop{.model = kA, .count = 1});
  Answer(Run(kA, 1, LaneId{0}));
  Answer(Run(kA, 1, LaneId{1}));
  Step(0);
  EXPECT_EQ(Said(),
            "launch b0 of m1: exit 1, lane 1 [4]\n"
            "reject 1 of m0: shed\n"
            "launch b1 of m0: exit 1, lane 0 [2]\n"
            "launch b2 of m0: exit 1, lane 1 [3]\n");
  Finish(2, 15, BatchStatus::kOk, LaneId{1});
  EXPECT_EQ(dispatcher_->view().lanes[1].running()[0].id, BatchId{0});
}

TEST_F(DispatcherTest, AnswersErrorsWhenTheEngineFails) {
  Open({});
  Arrive(kA, 0);
  Arrive(kA, 0);
  Answer(Run(kA, 2));
  Step(0);
  Finish(0, 5, BatchStatus::kFailed);
  EXPECT_EQ(Said(), "launch b0 of m0: exit 1, lane 0 [1 2]\ncomplete b0 failed [1 2]\n");
}

TEST_F(DispatcherTest, RefusesWhatAFullQueueCannotHold) {
  Open({.queue_capacity = 2});
  for (int i = 0; i < 3; ++i) Arrive(kA, 0);
  Arrive(kB, 0);
  EXPECT_EQ(Said(), "reject 3 of m0: queue full\n");
  EXPECT_EQ(dispatcher_->waiting(), 3u);
}

TEST_F(DispatcherTest, RefusesAModelThatIsNotThere) {
  Open({});
  Arrive(ModelId{7}, 0);
  EXPECT_EQ(Said(), "reject 1 of m7: unloaded\n");
}

// Expiry::kUnmeetable: at 40 ms the quickest exit (10 ms) still makes it, one nanosecond later it
// does not. Step says when to look again, and looking again is what expires it.
TEST_F(DispatcherTest, ExpiresARequestOnceNothingCanMeetItsDeadline) {
  Open({});
  Arrive(kA, 0);
  const TimePoint wake = Step(0);
  EXPECT_EQ(wake, kStart + Millis(40) + Nanos(1));
  EXPECT_EQ(Step(40), wake);
  EXPECT_EQ(Said(), "");
  EXPECT_EQ(dispatcher_->Step(wake), kNever);
  EXPECT_EQ(Said(), "reject 1 of m0: expired\n");
}

// Under overload a head is just feasible at the quickest exit and late in the batch that the policy
// chose. Run as it stands, that batch would be late, and so would every one after it.
TEST_F(DispatcherTest, ExpiresWhatTheChosenBatchWouldAnswerLate) {
  Open({});
  Arrive(kA, 0, 35);
  Arrive(kA, 0, 40);
  Arrive(kA, 20, 70);
  Answer(Run(kA, 3));  // 20 ms from 21 on: too late for the first two
  Answer(Run(kA, 1));
  Step(21);
  EXPECT_EQ(
      Said(),
      "reject 1 of m0: expired\nreject 2 of m0: expired\nlaunch b0 of m0: exit 1, lane 0 [3]\n");
}

TEST_F(DispatcherTest, RunsALateBatchWhenToldToExpireNothing) {
  Open({.expiry = Expiry::kNever});
  Arrive(kA, 0, 35);
  Answer(Run(kA, 1));
  Step(21);
  EXPECT_EQ(Said(), "launch b0 of m0: exit 1, lane 0 [1]\n");
}

TEST_F(DispatcherTest, RefusesARequestThatIsUnmeetableOnArrival) {
  Open({});
  Arrive(kA, 0, 10);
  Arrive(kA, 0, 9);
  EXPECT_EQ(Said(), "reject 2 of m0: expired\n");
}

TEST_F(DispatcherTest, ExpiresAtTheDeadlineWhenToldSo) {
  Open({.expiry = Expiry::kPassed});
  Arrive(kA, 0);
  EXPECT_EQ(Step(0), kStart + Millis(50) + Nanos(1));
  Step(50);
  EXPECT_EQ(Said(), "");
  dispatcher_->Step(kStart + Millis(50) + Nanos(1));
  EXPECT_EQ(Said(), "reject 1 of m0: expired\n");
}

TEST_F(DispatcherTest, NeverExpiresWhenToldSo) {
  Open({.expiry = Expiry::kNever});
  Arrive(kA, 0, 1);
  EXPECT_EQ(Step(0), kNever);
  EXPECT_EQ(Step(100'000), kNever);
  EXPECT_EQ(Said(), "");
  EXPECT_EQ(dispatcher_->waiting(), 1u);
}

// New served models while requests wait must not make the driver spin: nothing expires here.
TEST_F(DispatcherTest, NeverExpiresAfterANewServedModelsEither) {
  Open({.expiry = Expiry::kNever});
  Arrive(kA, 0);
  dispatcher_->Configure(TwoModels());
  EXPECT_EQ(Step(0), kNever);
}

// A tighter deadline of a client overtakes in the queue and expires on its own.
TEST_F(DispatcherTest, HonoursAClientsOwnDeadline) {
  Open({});
  Arrive(kA, 0);
  Arrive(kA, 1, 30);
  EXPECT_EQ(Step(1), kStart + Millis(20) + Nanos(1));
  Step(21);
  EXPECT_EQ(Said(), "reject 2 of m0: expired\n");
  EXPECT_EQ(Step(22), kStart + Millis(40) + Nanos(1));
}

TEST_F(DispatcherTest, StepsAgainWhenThePolicySaysSo) {
  Open({});
  Arrive(kA, 0);
  script_.until = kStart + Millis(5);
  EXPECT_EQ(Step(0), kStart + Millis(5));
  script_.until = kStart + Millis(500);
  EXPECT_EQ(Step(5), kStart + Millis(40) + Nanos(1));  // expiry comes first
}

TEST_F(DispatcherTest, CancelsAWaitingRequest) {
  Open({});
  for (int i = 0; i < 3; ++i) Arrive(kA, i);
  script_.heard.clear();
  dispatcher_->Cancel(kA, RequestId{2});
  EXPECT_EQ(Said(), "reject 2 of m0: cancelled\n");
  EXPECT_THAT(script_.heard, ::testing::ElementsAre("change 0"));
  Answer(Run(kA, 2));
  Step(3);
  EXPECT_EQ(Said(), "launch b0 of m0: exit 1, lane 0 [1 3]\n");
}

TEST_F(DispatcherTest, IgnoresTheCancellationOfWhatHasEnded) {
  Open({});
  Arrive(kA, 0);
  Answer(Run(kA, 1));
  Step(0);
  Finish(0, 20);
  Said();
  dispatcher_->Cancel(kA, RequestId{1});
  dispatcher_->Cancel(kB, RequestId{99});
  dispatcher_->Cancel(ModelId{7}, RequestId{1});
  EXPECT_EQ(Said(), "");
}

// The batch goes on for those who still wait; the one who left is answered at once.
TEST_F(DispatcherTest, CancelsOneOfARunningBatch) {
  Open({});
  for (int i = 0; i < 3; ++i) Arrive(kA, 0);
  Answer(Run(kA, 3));
  Step(0);
  dispatcher_->Cancel(kA, RequestId{2});
  Finish(0, 20);
  EXPECT_EQ(Said(),
            "launch b0 of m0: exit 1, lane 0 [1 2 3]\n"
            "reject 2 of m0: cancelled\n"
            "complete b0 ok [1 3]\n");
}

// Nobody waits: the lane is asked back, once, and the batch still reports.
TEST_F(DispatcherTest, AbortsABatchWhoseRequestsAreAllGone) {
  Open({});
  Arrive(kA, 0);
  Arrive(kA, 0);
  Answer(Run(kA, 2));
  Step(0);
  Said();
  dispatcher_->Cancel(kA, RequestId{1});
  dispatcher_->Cancel(kA, RequestId{2});
  EXPECT_EQ(Said(),
            "reject 1 of m0: cancelled\n"
            "reject 2 of m0: cancelled\n"
            "abort b0 on lane 0\n");
  EXPECT_FALSE(dispatcher_->view().lanes[0].HasFreeSlot());
  Finish(0, 3, BatchStatus::kAborted);
  EXPECT_EQ(Said(), "complete b0 aborted []\n");
  EXPECT_TRUE(dispatcher_->view().lanes[0].HasFreeSlot());
}

// A batch that is preempted and then loses its last request is asked to stop once, not twice.
TEST_F(DispatcherTest, AsksABatchToStopOnlyOnce) {
  Open({});
  Arrive(kA, 0);
  Answer(Run(kA, 1));
  Answer(Preempt{.lane = kLane, .batch = BatchId{0}});
  Step(0);
  dispatcher_->Cancel(kA, RequestId{1});
  Finish(0, 1, BatchStatus::kAborted);
  EXPECT_EQ(Said(),
            "launch b0 of m0: exit 1, lane 0 [1]\n"
            "abort b0 on lane 0\n"
            "reject 1 of m0: cancelled\n");
  EXPECT_EQ(dispatcher_->waiting(), 0u);
}

// Preempted requests go back in deadline order, before what came meanwhile.
TEST_F(DispatcherTest, ReturnsAPreemptedBatchToItsQueue) {
  Open({});
  Arrive(kA, 0);
  Arrive(kA, 1);
  Answer(Run(kA, 2));
  Step(1);
  Arrive(kA, 2);
  Answer(Preempt{.lane = kLane, .batch = BatchId{0}});
  Step(2);
  script_.heard.clear();
  Finish(0, 3, BatchStatus::kAborted);
  EXPECT_THAT(script_.heard, ::testing::ElementsAre("done b0 x2 2", "change 0"));
  EXPECT_EQ(dispatcher_->waiting(), 3u);
  Answer(Run(kA, 3));
  Step(3);
  EXPECT_EQ(Said(),
            "launch b0 of m0: exit 1, lane 0 [1 2]\n"
            "abort b0 on lane 0\n"
            "launch b1 of m0: exit 1, lane 0 [1 2 3]\n");
}

// The engine was quicker than the abort: the answers are good and are given.
TEST_F(DispatcherTest, AnswersAPreemptedBatchThatFinishedFirst) {
  Open({});
  Arrive(kA, 0);
  Answer(Run(kA, 1));
  Answer(Preempt{.lane = kLane, .batch = BatchId{0}});
  Step(0);
  Finish(0, 20);
  EXPECT_EQ(Said(),
            "launch b0 of m0: exit 1, lane 0 [1]\nabort b0 on lane 0\ncomplete b0 ok [1]\n");
}

// A dead lane is closed, gives back what it ran, and another lane takes it.
TEST_F(DispatcherTest, SurvivesTheLossOfALane) {
  Open({}, {LaneSpec{}, LaneSpec{}});
  Arrive(kA, 0);
  Arrive(kA, 0);
  Answer(Run(kA, 2));
  Step(0);
  Finish(0, 5, BatchStatus::kLost);
  EXPECT_FALSE(dispatcher_->view().lanes[0].HasFreeSlot());
  Answer(Run(kA, 2, LaneId{1}));
  Step(5);
  Finish(1, 25, BatchStatus::kOk, LaneId{1});
  dispatcher_->SetLaneOpen(kLane, true);
  EXPECT_TRUE(dispatcher_->view().lanes[0].HasFreeSlot());
  EXPECT_EQ(Said(),
            "launch b0 of m0: exit 1, lane 0 [1 2]\n"
            "launch b1 of m0: exit 1, lane 1 [1 2]\n"
            "complete b1 ok [1 2]\n");
}

// What a lane is not for never runs there, whatever the plan; and what no lane may run is refused.
TEST_F(DispatcherTest, LanesServeWhatTheirSpecAllowsOfThePlan) {
  LaneSpec only_a;
  only_a.serves = ModelSet::None(2);
  only_a.serves.Insert(kA);
  Open({}, {only_a, LaneSpec{}});
  const auto serves = [&](std::size_t lane) {
    std::string text;
    for (const ModelId m : {kA, kB}) {
      if (dispatcher_->view().lanes[lane].serves.contains(m)) text += m == kA ? 'a' : 'b';
    }
    return text;
  };
  EXPECT_EQ(serves(0), "a");
  EXPECT_EQ(serves(1), "ab");
  dispatcher_->Adopt(std::make_shared<const Plan>(
      Plan{.lanes = {{.entries = {{.model = kA}, {.model = kB}}}, {.entries = {{.model = kB}}}}}));
  EXPECT_EQ(serves(0), "a");
  EXPECT_EQ(serves(1), "b");
  dispatcher_->Adopt(std::make_shared<const Plan>(
      Plan{.lanes = {{.entries = {{.model = kB}, {.model = ModelId{99}}}}}}));
  EXPECT_EQ(serves(0), "");
  EXPECT_EQ(serves(1), "") << "a lane of which the plan knows nothing";
  dispatcher_->Adopt(nullptr);
  EXPECT_EQ(serves(0), "a");
  EXPECT_EQ(serves(1), "ab");
  Open({}, {only_a});
  Arrive(kB, 0);
  EXPECT_EQ(Said(), "reject 1 of m1: expired\n");
}

// What a lost lane gives back may be unmeetable by then.
TEST_F(DispatcherTest, ExpiresWhatALostLaneKeptTooLong) {
  Open({});
  Arrive(kA, 0);
  Answer(Run(kA, 1));
  EXPECT_EQ(Step(0), kNever);
  Finish(0, 45, BatchStatus::kLost);
  Step(45);
  EXPECT_EQ(Said(), "launch b0 of m0: exit 1, lane 0 [1]\nreject 1 of m0: expired\n");
}

// A full queue still takes back what ran, and refuses newcomers until it has drained.
TEST_F(DispatcherTest, TakesBackMoreThanItsQueueAccepts) {
  Open({.queue_capacity = 2});
  Arrive(kA, 0);
  Arrive(kA, 0);
  Answer(Run(kA, 2));
  Step(0);
  Arrive(kA, 1);
  Arrive(kA, 1);
  Finish(0, 2, BatchStatus::kLost);
  Arrive(kA, 3);
  EXPECT_EQ(dispatcher_->waiting(), 4u);
  EXPECT_EQ(Said(), "launch b0 of m0: exit 1, lane 0 [1 2]\nreject 5 of m0: queue full\n");
}

TEST_F(DispatcherTest, WritesEventsAndDecisionsIntoTheJournal) {
  struct Memory final : Journal {
    void Append(const JournalRecord& record) noexcept override { kinds.push_back(record.kind); }
    std::vector<JournalRecord::Kind> kinds;
  } memory;
  dispatcher_.emplace(DispatcherOptions{}, std::vector<LaneSpec>(1), script_, transcript_, &memory);
  dispatcher_->Configure(TwoModels());
  Arrive(kA, 0);
  Arrive(kA, 0);
  Arrive(kA, 0);
  Answer(Drop{.model = kA, .count = 1});
  Answer(Run(kA, 1));
  Answer(Preempt{.lane = kLane, .batch = BatchId{0}});
  Step(0);
  dispatcher_->Cancel(kA, RequestId{3});
  dispatcher_->SetLaneOpen(kLane, false);
  Finish(0, 1, BatchStatus::kAborted);
  using K = JournalRecord::Kind;
  EXPECT_THAT(memory.kinds, ::testing::ElementsAre(K::kArrive, K::kArrive, K::kArrive, K::kStep,
                                                   K::kDrop, K::kDispatch, K::kPreempt, K::kWait,
                                                   K::kCancel, K::kLane, K::kFinish));
}

using DispatcherDeathTest = DispatcherTest;

// What a policy or an engine must never do ends the process, in release builds too.
TEST_F(DispatcherDeathTest, StopsAtABrokenPolicy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Open({});
  Arrive(kA, 0, -1, 1);
  Arrive(kA, 0, -1, 2);
  const struct {
    Decision decision;
    const char* complaint;
  } cases[] = {
      {Run(kA, 2), "do not fit together"},
      {Run(kA, 5), "batch size"},
      {Run(kB, 1), "do not fit together"},
      {Dispatch{.model = kA, .exit = ExitId{2}, .batch = 1, .lane = kLane}, "exit"},
      {Dispatch{.model = kA, .exit = ExitId{0}, .batch = 1, .lane = LaneId{1}}, "unknown lane"},
      {Dispatch{.model = ModelId{2}, .batch = 1, .lane = kLane}, "unknown lane or model"},
      {Drop{.model = kA, .count = 3}, "drop count"},
      {Drop{.model = kA, .count = 0}, "drop count"},
      {Preempt{.lane = kLane, .batch = BatchId{0}}, "does not run"},
      {Wait{.until = kStart}, "asked forever"},
  };
  for (const auto& c : cases) {
    EXPECT_DEATH(
        {
          Answer(c.decision);
          Step(0);
        },
        c.complaint);
  }
}

TEST_F(DispatcherDeathTest, StopsAtABatchThatIsReportedTwice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Open({});
  Arrive(kA, 0);
  Answer(Run(kA, 1));
  Step(0);
  Finish(0, 20);
  EXPECT_DEATH(Finish(0, 21), "exactly once");
}

}  // namespace
}  // namespace tactus
