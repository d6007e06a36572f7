// A real lane whose engine dies under a batch: without this its calls would fail, hang, or be
// answered twice, and the lane would never serve again.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

testing::HarnessOptions Options(int lanes, Duration revive_after) {
  testing::HarnessOptions options;
  options.policy = "fifo:batch=4";
  options.runtime.lanes = lanes;
  options.runtime.revive_after = revive_after;
  options.profile = FlatProfile({"m"}, 8, 0.05);
  return options;
}

// The first lane that runs a batch dies under it, and with it every batch of that lane until its
// models are loaded anew.
TEST(LaneLoss, TheOtherLaneAnswersWhatTheDeadOneRan) {
  Harness h(Options(2, Seconds(3600)));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  std::atomic<int> dying{1};
  h.engine.dies = [&] { return dying.fetch_sub(1) > 0; };
  std::vector<std::size_t> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(h.Send("m", {1.0f * i, 2}, {1, 2}));
  h.replies.AwaitAll();
  for (int i = 0; i < 20; ++i) {
    const InferReply& reply = h.replies.Await(calls[i]);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(1.0f * i, 2));
  }
  EXPECT_LT(dying.load(), 1) << "no batch was lost";
}

TEST(LaneLoss, RequestsWaitForTheOnlyLaneUntilItIsBack) {
  Harness h(Options(1, Seconds(3600)));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  std::atomic<int> dying{1};
  h.engine.dies = [&] { return dying.fetch_sub(1) > 0; };
  h.engine.batches.Close();
  const std::size_t first = h.Send("m", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t second = h.Send("m", {3, 4}, {1, 2});
  h.engine.batches.Open();
  const std::size_t loaded = h.engine.loaded();
  h.engine.broken_models.insert("m");
  // Nothing happens until the loss is heard of; then its models cannot be had.
  while (h.runtime->ReviveLane(LaneId{0})) std::this_thread::yield();
  EXPECT_EQ(h.engine.died(), 1);
  EXPECT_FALSE(h.replies.answered(first));
  h.engine.broken_models.clear();
  EXPECT_FALSE(h.replies.answered(second));
  ASSERT_TRUE(h.runtime->ReviveLane(LaneId{0}));
  EXPECT_TRUE(h.replies.Await(first).status);
  EXPECT_TRUE(h.replies.Await(second).status);
  EXPECT_TRUE(h.runtime->ReviveLane(LaneId{0})) << "nothing happens to a lane that lives";
  EXPECT_EQ(h.engine.loaded(), loaded) << "what died is unloaded";
}

// Many deaths under load, of lanes that the runtime brings back by itself: every call is answered
// once, and the journal of it leads to the same decisions.
TEST(LaneLoss, EveryCallIsAnsweredOnceHoweverOftenLanesDie) {
  testing::KeptJournal journal("fifo:batch=4", {LaneSpec{}, LaneSpec{}});
  testing::HarnessOptions options = Options(2, Millis(1));
  options.journal = journal.writer();
  {
    Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
    std::atomic<int> batches{0};
    h.engine.dies = [&] { return batches.fetch_add(1) % 20 == 7; };
    for (int i = 0; i < 1000; ++i) h.Send("m", {1.0f * i, 2}, {1, 2});
    h.replies.AwaitAll();
    for (std::size_t i = 0; i < 1000; ++i) {
      const InferReply& reply = h.replies.Await(i);
      ASSERT_TRUE(reply.status) << reply.status.error().message;
      EXPECT_EQ(Floats(reply.outputs[0])[0], static_cast<float>(i));
    }
    EXPECT_GT(h.engine.died(), 5);
    h.runtime->Stop(Duration{});
    EXPECT_EQ(h.engine.loaded(), 0u);
  }
  journal.Replayed();
}

}  // namespace
}  // namespace tactus
