// Runs without end: without this a lane is held for as long as the client stays, and whoever comes
// after waits with it.
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/harness_test.h"
#include "runtime/kept_journal_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;

testing::HarnessOptions Watched(int lanes) {
  testing::HarnessOptions options;
  options.policy = "fifo:batch=1";
  options.runtime.lanes = lanes;
  options.runtime.watch = {.multiple = 20, .least = Millis(20)};
  options.runtime.expiry = Expiry::kNever;
  options.profile = FlatProfile({"m", "other"}, 8, 0.05);
  return options;
}

// Its runs may take 20 ms.
ModelSpec Short(const std::string& name, Duration slo = Millis(20)) {
  return FloatModel(name, 8, {2}, slo);
}

// The answer of the first call that is served. A machine that stalls makes a good run look like one
// without end; then the call says so, and another is sent.
const InferReply& Served(Harness& h, float value) {
  for (;;) {
    const InferReply& reply = h.replies.Await(h.Send("m", {value, 2}, {1, 2}));
    if (reply.status) return reply;
    EXPECT_EQ(reply.status.error().code, ErrorCode::kUnavailable) << reply.status.error().message;
  }
}

TEST(StuckRuns, TheOnlyLanesWaitersAreRefusedUntilItIsBack) {
  testing::KeptJournal journal("fifo:batch=1", {LaneSpec{}});
  testing::HarnessOptions options = Watched(1);
  options.journal = journal.writer();
  std::mutex mutex;
  std::vector<std::string> said;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    said.push_back(line);
  };
  {
    Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(Short("m")));
    EXPECT_TRUE(h.runtime->Ready());
    h.engine.batches.Close();
    const std::size_t held = h.Send("m", {1, 2}, {1, 2});
    h.engine.batches.AwaitWaiting(1);
    const std::size_t waiting = h.Send("m", {3, 4}, {1, 2});
    const InferReply& refused = h.replies.Await(waiting);
    ASSERT_FALSE(refused.status);
    EXPECT_EQ(refused.status.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(refused.served.outcome, Outcome::kShed);
    EXPECT_THAT(refused.status.error().message, HasSubstr("takes far longer than its profile"));
    EXPECT_FALSE(h.runtime->Ready());
    EXPECT_TRUE(h.runtime->lane_loads()[0].stuck);
    EXPECT_EQ(h.runtime->lane_loads()[0].stuck_runs, 1);
    const Duration busy = h.runtime->lane_loads()[0].busy;
    EXPECT_GE(busy, Millis(20)) << "while it runs";
    const InferReply& next = h.replies.Await(h.Send("m", {5, 6}, {1, 2}));
    EXPECT_EQ(next.status.error().code, ErrorCode::kUnavailable) << "it does not wait either";
    EXPECT_FALSE(h.replies.answered(held));
    h.engine.batches.Open();
    const InferReply& late = h.replies.Await(held);
    ASSERT_TRUE(late.status) << "its client waited for it";
    EXPECT_THAT(Floats(late.outputs[0]), ElementsAre(1, 2));
    EXPECT_EQ(Floats(Served(h, 7).outputs[0])[0], 7);
    h.runtime->Stop(Duration{});
    EXPECT_FALSE(h.runtime->lane_loads()[0].stuck);
    EXPECT_GE(h.runtime->lane_loads()[0].busy, busy);
  }
  ASSERT_FALSE(said.empty());
  EXPECT_THAT(said[0], HasSubstr("lane 0: a run of model 'm'"));
  journal.Replayed();
}

TEST(StuckRuns, OtherLanesServeOn) {
  Harness h(Watched(2));
  testing::Gate endless;
  endless.Close();
  h.engine.verdict = [&](const std::string& model, const BatchJob& job) -> Status {
    if (model == "other" && job.id.value() < (std::uint64_t{1} << 63)) endless.Pass();
    return {};
  };
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  ASSERT_TRUE(h.runtime->Serve(Short("other")));
  const std::size_t held = h.Send("other", {1, 2}, {1, 2});
  const auto stuck = [&] {
    const auto lanes = h.runtime->lane_loads();
    return lanes[0].stuck || lanes[1].stuck;
  };
  while (!stuck()) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Floats(Served(h, 1.0f * i).outputs[0])[0], 1.0f * i);
  EXPECT_TRUE(stuck());
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_FALSE(h.replies.answered(held));
  endless.Open();
  EXPECT_TRUE(h.replies.Await(held).status);
}

// An engine that can end a run does, once nobody waits for it in time.
TEST(StuckRuns, ARunThatIsLateForEverybodyIsStopped) {
  testing::HarnessOptions options = Watched(1);
  options.runtime.expiry = Expiry::kPassed;
  Harness h(std::move(options));
  h.engine.terminates = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(Short("m", Millis(200))));
  std::size_t call = 0;
  do {  // again where it expired before it ran
    h.engine.batches.Close();
    call = h.Send("m", {1, 2}, {1, 2}, Millis(200));
    while (h.engine.terminated() == 0 && !h.replies.answered(call)) std::this_thread::yield();
    h.engine.batches.Open();
  } while (h.engine.terminated() == 0);
  const InferReply& stopped = h.replies.Await(call);
  ASSERT_FALSE(stopped.status);
  EXPECT_EQ(stopped.served.outcome, Outcome::kExpired);
  EXPECT_THAT(stopped.status.error().message, HasSubstr("was stopped"));
}

// A profile of a small made-up input says little about a large one: a run that its callers have
// time for is no run without end.
TEST(StuckRuns, ARunWithinItsModelsSloIsNone) {
  Harness h(Watched(2));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  ASSERT_TRUE(h.runtime->Serve(Short("other")));
  h.engine.batches.Close();
  const std::size_t slow = h.Send("m", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t endless = h.Send("other", {3, 4}, {1, 2});
  h.engine.batches.AwaitWaiting(2);
  const auto stuck = [&] {
    int lanes = 0;
    for (const auto& lane : h.runtime->lane_loads()) lanes += lane.stuck ? 1 : 0;
    return lanes;
  };
  while (stuck() == 0) std::this_thread::yield();
  EXPECT_EQ(stuck(), 1) << "the run that began before is held for endless too";
  const std::size_t waiting = h.Send("m", {5, 6}, {1, 2});
  h.engine.batches.Open();
  for (const std::size_t call : {slow, endless, waiting}) EXPECT_TRUE(h.replies.Await(call).status);
}

TEST(StuckRuns, WhereNobodyWatchesARunMayTakeForEver) {
  testing::HarnessOptions options = Watched(1);
  options.runtime.watch.multiple = 0;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.batches.Close();
  const std::size_t held = h.Send("m", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t waiting = h.Send("m", {3, 4}, {1, 2});
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(held).status);
  EXPECT_TRUE(h.replies.Await(waiting).status);
}

// Without this a server that was paused would refuse whoever waits for a run that was paused too.
TEST(SeenRun, DoesNotAgeWhileTheServerStandsStill) {
  const auto at = [](std::int64_t ms) { return kStart + Millis(ms); };
  SeenRun run;
  EXPECT_EQ(run.Age(at(150), at(100), at(200), Millis(200)), Millis(50));
  EXPECT_EQ(run.Age(at(150), at(200), at(300), Millis(200)), Millis(150));
  EXPECT_EQ(run.Age(at(150), at(300), at(60'000), Millis(200)), Millis(350)) << "a pause";
  EXPECT_EQ(run.Age(at(150), at(60'000), at(60'100), Millis(200)), Millis(450)) << "it goes on";
  EXPECT_EQ(run.Age(at(60'150), at(60'100), at(60'200), Millis(200)), Millis(50)) << "another run";
  SeenRun beside;  // that no look saw before the pause
  EXPECT_EQ(beside.Age(at(310), at(300), at(60'000), Millis(200)), Millis(200));
}

TEST(RunWatchOptions, BoundsByMultipleAndLeast) {
  const RunWatchOptions watch{.multiple = 20, .least = Seconds(5)};
  EXPECT_EQ(watch.Bound(Millis(1)), Seconds(5));
  EXPECT_EQ(watch.Bound(Seconds(1)), Seconds(20));
}

}  // namespace
}  // namespace tactus
