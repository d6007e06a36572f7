// Requests under which lanes die. Without this a request that kills whoever runs it would kill one
// lane after the other for ever, and whoever shares its batch would be blamed with it.
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine_placement.h"
#include "runtime/harness_test.h"
#include "runtime/kept_journal_test.h"
#include "runtime/layout/lane_reviver.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;
using testing::SendInOneBatch;

bool HoldsPoison(const BatchJob& job) {
  for (const RowInputs& row : job.rows) {
    float first = 0;
    std::memcpy(&first, row.inputs[0].data, sizeof first);
    if (first < 0) return true;
  }
  return false;
}

testing::HarnessOptions LanesThatComeBack(int lanes) {
  testing::HarnessOptions options;
  options.policy = "fifo:batch=8";
  options.runtime.lanes = lanes;
  options.runtime.revive_after = Millis(1);
  options.profile = FlatProfile({"m", "bad"}, 8, 0.05);
  return options;
}

TEST(Suspects, TheOneOfWhichTheLaneDiesTwiceIsRefusedAndTheOthersAreAnswered) {
  Harness h(LanesThatComeBack(1));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.dies_of = HoldsPoison;
  const auto calls = SendInOneBatch(h, {1, 2, -3, 4, 5});
  for (const int i : {0, 1, 3, 4}) {
    const InferReply& reply = h.replies.Await(calls[i]);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(i + 1.0f, 7));
    EXPECT_EQ(h.replies.times(calls[i]), 1u);
  }
  const InferReply& bad = h.replies.Await(calls[2]);
  ASSERT_FALSE(bad.status);
  EXPECT_EQ(bad.served.outcome, Outcome::kError);
  EXPECT_EQ(bad.status.error().code, ErrorCode::kInternal);
  EXPECT_THAT(bad.status.error().message, HasSubstr("signal 8 (SIGFPE)"));
  EXPECT_THAT(bad.status.error().message, HasSubstr("it is not run again"));
  EXPECT_EQ(h.replies.times(calls[2]), 1u);
  EXPECT_EQ(h.engine.died(), 2);
}

// Several at once: each is found out alone.
TEST(Suspects, EachOfSeveralInOneBatchIsFound) {
  Harness h(LanesThatComeBack(1));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.dies_of = HoldsPoison;
  const auto calls = SendInOneBatch(h, {-1, 2, -3, -4, 5});
  for (const int i : {0, 2, 3}) EXPECT_FALSE(h.replies.Await(calls[i]).status) << i;
  for (const int i : {1, 4}) EXPECT_TRUE(h.replies.Await(calls[i]).status) << i;
  EXPECT_EQ(h.engine.died(), 1 + 3) << "once together, then each alone";
}

// Somebody killed the process, or memory ran out for the large batch.
TEST(Suspects, OneDeathIsNoProof) {
  Harness h(LanesThatComeBack(1));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.dies_of = [](const BatchJob& job) { return job.rows.size() > 1; };
  for (const std::size_t call : SendInOneBatch(h, {1, 2, 3})) {
    EXPECT_TRUE(h.replies.Await(call).status);
  }
  EXPECT_EQ(h.engine.died(), 1);
}

TEST(Suspects, NobodyIsBlamedWhereTheBatchIsNotWhyTheLaneDied) {
  Harness h(LanesThatComeBack(1));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  std::atomic<int> dying{5};
  h.engine.dies = [&] { return dying.fetch_sub(1) > 0; };
  EXPECT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
  EXPECT_EQ(h.engine.died(), 5);
}

TEST(Suspects, ACallWithSuchARowFailsWhole) {
  Harness h(LanesThatComeBack(2));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.dies_of = HoldsPoison;
  const std::size_t bad = h.Send("m", {1, 1, -1, 1, 2, 2}, {3, 2});
  const std::size_t good = h.Send("m", {3, 3, 4, 4}, {2, 2});
  h.replies.AwaitAll();
  EXPECT_FALSE(h.replies.Await(bad).status);
  const InferReply& reply = h.replies.Await(good);
  ASSERT_TRUE(reply.status) << reply.status.error().message;
  EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(3, 3, 4, 4));
  h.runtime->Stop(Duration{});
  EXPECT_EQ(h.replies.times(bad), 1u);
  EXPECT_EQ(h.replies.times(good), 1u);
}

// The same decisions come of the journal.
TEST(Suspects, AJournalOfThemReplays) {
  testing::KeptJournal journal("fifo:batch=8", {LaneSpec{}, LaneSpec{}});
  testing::HarnessOptions options = LanesThatComeBack(2);
  options.journal = journal.writer();
  {
    Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
    h.engine.dies_of = HoldsPoison;
    for (int i = 0; i < 300; ++i) h.Send("m", {i % 16 == 3 ? -1.0f : 1.0f * i, 2}, {1, 2});
    h.replies.AwaitAll();
    for (std::size_t i = 0; i < 300; ++i) {
      EXPECT_EQ(h.replies.times(i), 1u);
      EXPECT_EQ(h.replies.Await(i).status.has_value(), i % 16 != 3) << i;
    }
    h.runtime->Stop(Duration{});
    EXPECT_EQ(h.engine.loaded(), 0u);
  }
  journal.Replayed();
}

// A model that kills whoever loads it must not do so where others are.
TEST(IsolatedLanes, AModelIsTriedApartBeforeItComesToTheLanes) {
  testing::HarnessOptions options = LanesThatComeBack(2);
  options.profile.reset();  // it is measured, too
  Harness h(std::move(options));
  h.engine.isolated = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  std::vector<int> processes;
  for (const LaneSpec& lane : h.engine.lanes()) processes.push_back(OnCpu(lane.placement).process);
  EXPECT_THAT(processes, ElementsAre(kTrialProcess, 0, 1));
  EXPECT_EQ(h.engine.loaded(), 2u) << "the trial has ended";
  EXPECT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
  h.engine.ForgetLanes();
  h.engine.broken_models.insert("bad");
  EXPECT_FALSE(h.runtime->Serve(FloatModel("bad")));
  EXPECT_THAT(h.engine.lanes(), ::testing::IsEmpty());
}

TEST(IsolatedLanes, AModelThatCannotBeHadAgainDoesNotKeepItsLaneDead) {
  testing::HarnessOptions options = LanesThatComeBack(1);
  options.runtime.revive_after = Seconds(3600);
  std::vector<std::string> said;
  std::mutex mutex;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    said.push_back(line);
  };
  Harness h(std::move(options));
  h.engine.isolated = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("bad")));
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  std::atomic<int> dying{1};
  h.engine.dies = [&] { return dying.fetch_sub(1) > 0; };
  const std::size_t call = h.Send("m", {1, 2}, {1, 2});
  h.engine.broken_models.insert("bad");
  while (h.engine.died() == 0 || !h.replies.answered(call)) {
    ASSERT_TRUE(h.runtime->ReviveLane(LaneId{0}));
  }
  EXPECT_TRUE(h.replies.Await(call).status);
  EXPECT_FALSE(h.replies.Await(h.Send("bad", {1, 2}, {1, 2})).status);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(said, ::testing::Contains(HasSubstr("model 'bad' cannot be had on lane 0 again")));
}

// What kept a model from its lane may pass: without this it would be lost for good, and be called
// ready all the while.
TEST(IsolatedLanes, AModelThatALaneCameBackWithoutIsNotReadyAndIsTriedUntilItIsThere) {
  testing::HarnessOptions options = LanesThatComeBack(1);
  std::atomic<Runtime*> runtime = nullptr;
  std::atomic<int> was_there = -1;  // when it was said; -1: it was not
  options.log = [&](const std::string& line) {
    if (line != "model 'm' is on lane 0 again") return;
    was_there = runtime.load()->ModelReady("m", -1) ? 1 : 0;
  };
  Harness h(std::move(options));
  runtime = h.runtime.get();
  h.engine.isolated = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.broken = true;
  h.runtime->LaneDied(LaneId{0}, Error{ErrorCode::kUnavailable, "signal 9 (SIGKILL)"});
  while (h.runtime->ModelReady("m", -1)) std::this_thread::yield();
  EXPECT_EQ(h.runtime->ModelReady("m", -1).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(h.runtime->Ready());
  EXPECT_EQ(h.runtime->Index()[0].state, "UNAVAILABLE");
  h.engine.broken = false;
  while (!h.runtime->ModelReady("m", -1)) std::this_thread::yield();
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_EQ(h.runtime->Index()[0].state, "READY");
  EXPECT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
  while (was_there < 0) std::this_thread::yield();
  EXPECT_EQ(was_there, 1);
  h.runtime->Stop(Duration{});
  EXPECT_EQ(h.engine.loaded(), 0u);
}

// Without this the lane that lacks the model would fail its calls at once, be free first, and so
// take them all, while the other lane idles.
TEST(IsolatedLanes, ALaneThatLostAModelLeavesItsCallsToTheOneThatHasIt) {
  testing::KeptJournal journal("fifo:batch=8", {LaneSpec{}, LaneSpec{}});
  testing::HarnessOptions options = LanesThatComeBack(2);
  options.journal = journal.writer();
  std::atomic<bool> back{false};
  std::atomic<bool> has_it{false};
  options.log = [&](const std::string& line) {
    if (line == "lane 0 is back") back = true;
    if (line == "model 'm' is on lane 0 again") has_it = true;
  };
  {
    Harness h(std::move(options));
    h.engine.isolated = true;
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
    h.engine.broken = true;
    h.runtime->LaneDied(LaneId{0}, Error{ErrorCode::kUnavailable, "signal 9 (SIGKILL)"});
    while (!back) std::this_thread::yield();
    h.engine.batches.Close();  // the lane that has it is busy, the other one is not
    for (int i = 0; i < 40; ++i) h.Send("m", {1.0f * i, 2}, {1, 2});
    EXPECT_TRUE(h.runtime->ModelReady("m", -1));
    EXPECT_TRUE(h.runtime->Ready());
    h.engine.batches.Open();
    for (std::size_t i = 0; i < 40; ++i) {
      const InferReply& reply = h.replies.Await(i);
      ASSERT_TRUE(reply.status) << reply.status.error().message;
      EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(1.0f * i, 2));
      EXPECT_EQ(h.replies.times(i), 1u);
    }
    h.engine.broken = false;
    while (!has_it) std::this_thread::yield();
    h.engine.batches.Close();
    for (int i = 0; i < 40; ++i) h.Send("m", {1, 2}, {1, 2});
    h.engine.batches.AwaitWaiting(2);  // both lanes run it again
    h.engine.batches.Open();
    h.replies.AwaitAll();
    h.runtime->Stop(Duration{});
    EXPECT_EQ(h.engine.loaded(), 0u);
  }
  journal.Replayed();
}

TEST(IsolatedLanes, WhatWaitsForAModelThatNoLaneHasIsRefusedWithTheReason) {
  testing::HarnessOptions options = LanesThatComeBack(1);
  options.runtime.revive_after = Seconds(3600);
  Harness h(std::move(options));
  h.engine.isolated = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.broken_models.insert("m");
  h.runtime->LaneDied(LaneId{0}, Error{ErrorCode::kUnavailable, "signal 9 (SIGKILL)"});
  const std::size_t waits = h.Send("m", {1, 2}, {1, 2});
  ASSERT_TRUE(h.runtime->ReviveLane(LaneId{0}));
  const std::size_t comes = h.Send("m", {1, 2}, {1, 2});
  for (const std::size_t call : {waits, comes}) {
    const InferReply& reply = h.replies.Await(call);
    ASSERT_FALSE(reply.status);
    EXPECT_EQ(reply.status.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(reply.status.error().message, HasSubstr("no lane has model 'm' again yet"));
    EXPECT_EQ(h.replies.times(call), 1u);
  }
  EXPECT_THAT(h.engine.seen(), ::testing::IsEmpty());
}

// Nobody has to lose a batch to find out.
TEST(IsolatedLanes, ALaneThatDiesIdleIsLoadedAnew) {
  Harness h(LanesThatComeBack(1));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.ForgetLanes();
  h.runtime->LaneDied(LaneId{0}, Error{ErrorCode::kUnavailable, "signal 9 (SIGKILL)"});
  EXPECT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
  EXPECT_THAT(h.engine.lanes(), ::testing::SizeIs(1)) << "its model was not loaded anew";
}

// Without this a process that hangs would get batches, which wait for its end, while other lanes
// are idle, and readiness would hold until it is killed.
TEST(IsolatedLanes, ASilentLaneGetsNoBatchAndWhereAllAreTheServerIsNotReady) {
  Harness h(LanesThatComeBack(2));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.runtime->SetLaneSilent(LaneId{0}, true);
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_TRUE(h.runtime->ModelReady("m", -1));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
  }
  EXPECT_EQ(h.runtime->lane_loads()[0].batches, 0);
  h.runtime->SetLaneSilent(LaneId{1}, true);
  h.runtime->SetLaneSilent(LaneId{1}, true);
  EXPECT_FALSE(h.runtime->Ready());
  EXPECT_EQ(h.runtime->ModelReady("m", -1).error().code, ErrorCode::kUnavailable);
  const std::size_t waits = h.Send("m", {1, 2}, {1, 2});
  h.runtime->SetLaneSilent(LaneId{0}, false);
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_TRUE(h.replies.Await(waits).status) << "it waits for what becomes of the lanes";
  EXPECT_EQ(h.runtime->lane_loads()[0].batches, 1);
}

// Without this a process that hangs while it starts would keep all other lanes dead.
TEST(IsolatedLanes, LanesAreBroughtBackBesideEachOther) {
  testing::HarnessOptions options = LanesThatComeBack(2);
  options.runtime.revivers = 2;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.slow_model = "m";
  h.engine.loads.Close();
  for (const LaneId::rep lane : {0, 1}) {
    h.runtime->LaneDied(LaneId{lane}, Error{ErrorCode::kUnavailable, "signal 9 (SIGKILL)"});
  }
  h.engine.loads.AwaitWaiting(2);
  h.engine.loads.Open();
  EXPECT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
}

TEST(IsolatedLanes, ASilentLaneThatDiesIsLoadedAnewAndServes) {
  Harness h(LanesThatComeBack(1));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.runtime->SetLaneSilent(LaneId{0}, true);
  const std::size_t waits = h.Send("m", {1, 2}, {1, 2});
  h.engine.ForgetLanes();
  h.runtime->LaneDied(LaneId{0}, Error{ErrorCode::kUnavailable, "it gave no sign of life"});
  EXPECT_TRUE(h.replies.Await(waits).status);
  EXPECT_THAT(h.engine.lanes(), ::testing::SizeIs(1)) << "its model was not loaded anew";
  h.runtime->SetLaneSilent(LaneId{0}, false);
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
}

// Without this a server whose processes do not come back would be ready all the while.
TEST(IsolatedLanes, WhereAllLanesStayDeadTheServerIsNotReadyUntilOneIsBack) {
  testing::HarnessOptions options = LanesThatComeBack(1);
  options.runtime.revive_after = Seconds(3600);
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.runtime->LaneDied(LaneId{0}, Error{ErrorCode::kUnavailable, "signal 9 (SIGKILL)"});
  while (h.runtime->Ready()) std::this_thread::yield();
  EXPECT_FALSE(h.runtime->ModelReady("m", -1));
  ASSERT_TRUE(h.runtime->ReviveLane(LaneId{0}));
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_TRUE(h.runtime->ModelReady("m", -1));
}

// Without this a process that hangs would hold the thread of a front end that brought a short call,
// and with it health and all other connections of that thread.
TEST(IsolatedLanes, NoFrontEndsThreadWaitsForAProcess) {
  Harness h(LanesThatComeBack(1));
  h.engine.isolated = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  for (int i = 0; i < 300; ++i) {  // until its batches are known to be short
    ASSERT_TRUE(h.replies.Await(h.Send("m", {1, 2}, {1, 2})).status);
  }
  h.engine.batches.Close();
  const std::size_t hangs = h.Send("m", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(hangs).status);
}

// A lane that is silent under a run goes on with what it has, and takes more when it speaks again.
TEST(IsolatedLanes, ALaneThatIsSilentUnderABatchEndsItAndOpensAgain) {
  testing::KeptJournal journal("fifo:batch=8", {LaneSpec{}});
  testing::HarnessOptions options = LanesThatComeBack(1);
  options.journal = journal.writer();
  {
    Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
    h.engine.batches.Close();
    const std::size_t runs = h.Send("m", {1, 2}, {1, 2});
    h.engine.batches.AwaitWaiting(1);
    h.runtime->SetLaneSilent(LaneId{0}, true);
    const std::size_t waits = h.Send("m", {3, 4}, {1, 2});
    h.engine.batches.Open();
    EXPECT_TRUE(h.replies.Await(runs).status);
    EXPECT_FALSE(h.replies.answered(waits));
    h.runtime->SetLaneSilent(LaneId{0}, false);
    EXPECT_TRUE(h.replies.Await(waits).status);
    h.runtime->Stop(Duration{});
  }
  journal.Replayed();
}

TEST(RevivalDelay, DoublesForALaneThatDoesNotLiveAndForgetsItWhenItDoes) {
  RevivalDelay delay(Millis(10), Millis(60));
  EXPECT_EQ(delay.Next(Seconds(9)), Millis(10));
  EXPECT_EQ(delay.Next(Millis(1)), Millis(20));
  EXPECT_EQ(delay.Next(Duration{}), Millis(40));
  EXPECT_EQ(delay.Next(Millis(59)), Millis(60));
  EXPECT_EQ(delay.Next(Duration{}), Millis(60));
  EXPECT_EQ(delay.Next(Millis(60)), Millis(10)) << "it lived for long enough";
  RevivalDelay even(Seconds(1), Duration{});
  EXPECT_EQ(even.Next(Duration{}), Seconds(1));
  EXPECT_EQ(even.Next(Duration{}), Seconds(1));
}

}  // namespace
}  // namespace tactus
