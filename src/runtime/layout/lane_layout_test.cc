// A device that is split anew while it serves: nothing is lost, and models are where the plan says.
#include "runtime/layout/lane_layout.h"

#include <atomic>
#include <fstream>
#include <set>
#include <thread>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/temporary_folder_test.h"
#include "runtime/harness_test.h"
#include "runtime/soak_client_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;

const std::vector<std::string> kNames = {"a", "b", "c"};

// A lane of the class, 0 a half and 1 the whole device, with these of kNames.
LanePlan LaneOf(LaneClass::rep c, const std::vector<int>& models) {
  LanePlan lane{.spec = {.lane_class = LaneClass{c}, .fraction = c == 0 ? 0.5 : 1.0},
                .cycle = Millis(10)};
  for (const int m : models) {
    lane.entries.push_back({.model = ModelId{static_cast<ModelId::rep>(m)}, .batch = 4});
  }
  return lane;
}
Plan Whole() { return {.lanes = {LaneOf(1, {0, 1, 2})}}; }
Plan Halves() { return {.lanes = {LaneOf(0, {0}), LaneOf(0, {1, 2})}}; }
Plan OtherHalves() { return {.lanes = {LaneOf(0, {2, 0}), LaneOf(0, {1})}}; }

testing::HarnessOptions HalvesAndWhole() {
  testing::HarnessOptions options;
  options.policy = "planned";
  options.runtime.split = SplitOptions{
      .cores = 2,
      .shares = {{0.5, FlatProfile(kNames, 8, 0.02)}, {1, FlatProfile(kNames, 8, 0.01)}}};
  return options;
}

class LaneLayoutTest : public ::testing::Test {
 protected:
  LaneLayoutTest() : h_(Logged()) {
    h_.runtime->Start();
    for (const std::string& name : kNames) EXPECT_TRUE(h_.runtime->Serve(FloatModel(name)));
  }
  testing::HarnessOptions Logged() {
    testing::HarnessOptions options = HalvesAndWhole();
    options.log = [this](const std::string& line) {
      if (!line.contains("has drained")) return;
      warning_ = line;
      ++warnings_;
    };
    return options;
  }
  void Adopt(const Plan& plan) {
    const Status adopted = h_.runtime->Adopt(plan, kNames);
    EXPECT_TRUE(adopted) << adopted.error().message;
  }
  void ExpectServed() {
    for (const std::string& name : kNames) {
      const InferReply& reply = h_.replies.Await(h_.Send(name, {1, 2}, {1, 2}));
      ASSERT_TRUE(reply.status) << name << ": " << reply.status.error().message;
      EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(1, 2));
    }
  }
  // A batch of `first` does not end while the device goes over to `next`, and one of `second` runs
  // there, when changes end: whoever waits for the change must come back.
  void EndChangesBesideABatch(const char* first, const Plan& next, const char* second) {
    h_.engine.batches.Close();
    first_ = h_.Send(first, {1, 2}, {1, 2});
    h_.engine.batches.AwaitWaiting(1);
    std::thread adopts([&] { Adopt(next); });
    second_ = h_.Send(second, {1, 2}, {1, 2});
    h_.engine.batches.AwaitWaiting(2);
    h_.runtime->EndChanges();
    adopts.join();
    EXPECT_FALSE(h_.replies.answered(first_));
  }
  void AnswerBoth() {
    h_.engine.batches.Open();
    EXPECT_TRUE(h_.replies.Await(first_).status);
    EXPECT_TRUE(h_.replies.Await(second_).status);
    h_.runtime->Stop(Duration{});
    EXPECT_EQ(h_.engine.loaded(), 0u);
  }
  std::size_t first_ = 0;
  std::size_t second_ = 0;
  std::string warning_;  // the last of a drain
  std::atomic<int> warnings_ = 0;
  Harness h_;
};

TEST_F(LaneLayoutTest, ModelsAreLoadedWhereThePlanSaysAndNowhereElse) {
  EXPECT_EQ(h_.engine.loaded(), 0u);
  Adopt(Whole());
  EXPECT_EQ(h_.engine.loaded(), 3u);
  ExpectServed();
  Adopt(Halves());
  EXPECT_EQ(h_.engine.loaded(), 3u);
  ExpectServed();
  Adopt(OtherHalves());
  ExpectServed();
  ASSERT_TRUE(h_.runtime->Unload("b"));
  EXPECT_FALSE(h_.runtime->Find("b", -1));
  ASSERT_TRUE(h_.runtime->Serve(FloatModel("b")));
  ExpectServed();
}

TEST_F(LaneLayoutTest, AShareIsThreadsOfTheEngine) {
  h_.engine.ForgetLanes();
  Adopt(Whole());
  for (const LaneSpec& lane : h_.engine.lanes()) EXPECT_EQ(OnCpu(lane.placement).threads, 2);
  h_.engine.ForgetLanes();
  Adopt(Halves());
  EXPECT_EQ(h_.engine.lanes().size(), 3u);
  for (const LaneSpec& lane : h_.engine.lanes()) EXPECT_EQ(OnCpu(lane.placement).threads, 1);
}

// Two lanes on the same SMs would each be slower than its profile.
TEST(LaneLayoutOnDevice, AShareIsAPlaceThatNoOtherLaneHas) {
  testing::HarnessOptions options = HalvesAndWhole();
  options.runtime.split->on_device = true;
  Harness h(std::move(options));
  h.runtime->Start();
  for (const std::string& name : kNames) ASSERT_TRUE(h.runtime->Serve(FloatModel(name)));
  const auto offsets = [&](const Plan& plan) {
    h.engine.ForgetLanes();
    EXPECT_TRUE(h.runtime->Adopt(plan, kNames));
    std::set<double> all;
    for (const LaneSpec& lane : h.engine.lanes()) {
      all.insert(std::get<CudaPlacement>(lane.placement).offset);
    }
    return all;
  };
  EXPECT_THAT(offsets(Whole()), ElementsAre(0));
  EXPECT_THAT(offsets(Halves()), ElementsAre(0, 0.5));
  EXPECT_THAT(offsets(Whole()), ElementsAre(0));
}

TEST_F(LaneLayoutTest, WhatRunsOnAnOldLaneEndsAndWhatWaitsGoesToTheNewOnes) {
  Adopt(Whole());
  h_.engine.batches.Close();
  std::vector<std::size_t> calls = {h_.Send("a", {1, 2}, {1, 2})};
  h_.engine.batches.AwaitWaiting(1);
  for (const char* name : {"b", "c", "a"}) calls.push_back(h_.Send(name, {1, 2}, {1, 2}));
  std::thread adopts([&] { Adopt(Halves()); });
  h_.engine.batches.AwaitWaiting(3);  // both halves run beside the batch of the old lane
  EXPECT_FALSE(h_.replies.answered(calls[0]));
  h_.engine.batches.Open();
  adopts.join();
  h_.replies.AwaitAll();
  for (const std::size_t call : calls) EXPECT_TRUE(h_.replies.Await(call).status);
  EXPECT_EQ(h_.engine.loaded(), 3u);
}

TEST_F(LaneLayoutTest, APlanThatDoesNotFitChangesNothing) {
  Adopt(Whole());
  const Plan three{.lanes = {LaneOf(0, {0}), LaneOf(0, {1}), LaneOf(0, {2})}};
  const Status refused = h_.runtime->Adopt(three, kNames);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  ExpectServed();
}

TEST_F(LaneLayoutTest, ALaneThatCannotBeHadLeavesTheLanesAsTheyWere) {
  Adopt(Whole());
  h_.engine.broken_models.insert("b");
  const Status refused = h_.runtime->Adopt(Halves(), kNames);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("model 'b' cannot be had on a lane of 50 %"));
  EXPECT_EQ(h_.engine.loaded(), 3u) << "of the lane that serves; nothing is left of the others";
  EXPECT_EQ(h_.runtime->layout().changes, 1);
  EXPECT_EQ(h_.runtime->layout().given_up, 1);
  ExpectServed();
  h_.engine.broken_models.clear();
  Adopt(Halves());
  EXPECT_EQ(h_.runtime->layout().changes, 2);
  ExpectServed();
}

TEST_F(LaneLayoutTest, ALaneThatStaysKeepsItsModelsWhereAnotherPlanCannotBeHad) {
  Adopt(Halves());
  h_.engine.broken_models.insert("a");
  const Plan more{.lanes = {LaneOf(0, {0, 1}), LaneOf(0, {1, 2, 0})}};
  EXPECT_FALSE(h_.runtime->Adopt(more, kNames));
  EXPECT_EQ(h_.engine.loaded(), 3u) << "'b' came to the first lane and went again";
  ExpectServed();
}

// What is not unloaded holds its memory for good, where no plan knows of it.
TEST_F(LaneLayoutTest, ALaneThatStaysUnloadsWhatLeftItOnceItRunsNoMore) {
  Adopt(Halves());
  h_.engine.batches.Close();
  const std::size_t old = h_.Send("c", {1, 2}, {1, 2});
  h_.engine.batches.AwaitWaiting(1);
  std::thread adopts([&] { Adopt(OtherHalves()); });
  while (h_.engine.loaded() < 4) std::this_thread::yield();
  const std::size_t next = h_.Send("c", {1, 2}, {1, 2});
  h_.engine.batches.AwaitWaiting(2);  // on the lane that has it now
  EXPECT_EQ(h_.engine.loaded(), 4u);
  h_.engine.batches.Open();
  adopts.join();
  EXPECT_EQ(h_.engine.loaded(), 3u);
  EXPECT_TRUE(h_.replies.Await(old).status);
  EXPECT_TRUE(h_.replies.Await(next).status);
  ExpectServed();
}

// Nothing bounds how long that takes, so somebody must be told.
TEST_F(LaneLayoutTest, ALaneThatDrainsForTooLongIsWarnedOf) {
  Adopt(Whole());
  EXPECT_EQ(h_.runtime->layout().draining, 0);
  h_.engine.batches.Close();
  const std::size_t old = h_.Send("a", {1, 2}, {1, 2});
  h_.engine.batches.AwaitWaiting(1);
  std::thread adopts([&] { Adopt(Halves()); });
  while (warnings_.load() == 0) std::this_thread::yield();
  EXPECT_EQ(h_.runtime->layout().draining, 1);
  EXPECT_GT(h_.runtime->layout().drain, DrainWatch::kLeast);
  h_.engine.batches.Open();
  adopts.join();
  EXPECT_EQ(warnings_.load(), 1);
  EXPECT_THAT(warning_,
              HasSubstr("of 100 % has drained for more than 0.1 s, 10 times the longest"));
  EXPECT_EQ(h_.runtime->layout().draining, 0);
  EXPECT_EQ(h_.runtime->layout().drain, Duration{});
  EXPECT_TRUE(h_.replies.Await(old).status);
}

// A server that is told to stop could else not, for as long as a batch runs.
TEST_F(LaneLayoutTest, AnOldLaneThatNeverDrainsHoldsNobodyOnceChangesHaveEnded) {
  Adopt(Whole());
  EndChangesBesideABatch("a", Halves(), "b");
  EXPECT_EQ(h_.runtime->layout().changes, 2) << "the new lanes serve";
  EXPECT_EQ(h_.runtime->Adopt(Whole(), kNames).error().code, ErrorCode::kCancelled);
  AnswerBoth();
}

TEST_F(LaneLayoutTest, WhatLeftALaneThatStaysHoldsNobodyOnceChangesHaveEnded) {
  Adopt(Halves());
  EndChangesBesideABatch("c", OtherHalves(), "c");
  AnswerBoth();
}

TEST_F(LaneLayoutTest, WhatIsBeingPreparedIsGivenUpOnceChangesHaveEnded) {
  Adopt(Whole());
  h_.engine.slow_model = "a";
  h_.engine.loads.Close();
  std::thread adopts(
      [&] { EXPECT_EQ(h_.runtime->Adopt(Halves(), kNames).error().code, ErrorCode::kCancelled); });
  h_.engine.loads.AwaitWaiting(1);
  h_.runtime->EndChanges();
  h_.engine.loads.Open();
  adopts.join();
  EXPECT_EQ(h_.engine.loaded(), 3u);
  EXPECT_EQ(h_.runtime->layout().changes, 1);
  EXPECT_EQ(h_.runtime->layout().given_up, 0) << "no lane was refused";
  ExpectServed();
}

// Models that come and go give others their numbers.
TEST_F(LaneLayoutTest, AModelIsKnownByItsNameWhateverItsNumberInThePlan) {
  Adopt(Halves());
  ASSERT_TRUE(h_.runtime->Adopt(Halves(), {"c", "a", "b"}));
  EXPECT_EQ(h_.engine.loaded(), 3u);
  ExpectServed();
  const DeviceLayout layout = h_.runtime->layout();
  std::vector<std::string> alone;
  for (const LanePlan& lane : layout.plan->lanes) {
    if (lane.entries.size() == 1) alone.push_back(layout.models[lane.entries[0].model.value()]);
  }
  EXPECT_THAT(alone, ElementsAre("c"));
}

TEST(LaneLayout, WhereTheFirstLaneCannotBeHadNothingIsServedAndTheNextPlanMay) {
  Harness h(HalvesAndWhole());
  h.runtime->Start();
  for (const std::string& name : kNames) ASSERT_TRUE(h.runtime->Serve(FloatModel(name)));
  h.engine.broken_models.insert("b");
  EXPECT_FALSE(h.runtime->Adopt(Halves(), kNames));
  EXPECT_EQ(h.runtime->layout().plan, nullptr);
  EXPECT_EQ(h.engine.loaded(), 0u);
  h.engine.broken_models.clear();
  ASSERT_TRUE(h.runtime->Adopt(Halves(), kNames));
  EXPECT_TRUE(h.replies.Await(h.Send("b", {1, 2}, {1, 2})).status);
}

TEST(LoadedModels, MemoryIsWhatAProfileSaysElseWhatTheGraphsTake) {
  SplitOptions split{
      .cores = 2,
      .shares = {{0.5, FlatProfile({"a", "b"}, 8, 0.02)}, {1, FlatProfile({"a", "b"}, 8, 0.01)}},
      .memory_mb = 3};
  split.shares[1].profile.models[0].peak_memory_bytes = 2'500'000;
  const TemporaryFolder folder;
  const auto graph = folder / "b.onnx";
  std::ofstream(graph, std::ios::binary) << std::string(1'500'000, 'x');
  ModelSpec b = FloatModel("b");
  for (ExitSpec& exit : b.exits) exit.graph = graph;
  const Model model_a{.name = "a", .slo = Seconds(1), .max_batch = 8, .exits = {{"1"}, {"2"}}};
  Model model_b = model_a;
  model_b.name = "b";
  const ModelSpec a = FloatModel("a");
  const auto question =
      MakePlanQuestion(std::vector<LoadedModel>{{model_a, a}, {model_b, b}}, split, {});
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_DOUBLE_EQ(question->input.models[0].memory_mb, 2.5);
  EXPECT_DOUBLE_EQ(question->input.models[1].memory_mb, 1.5);
  Plan plan{.lanes = {LaneOf(1, {0, 1})}};
  for (PlanEntry& entry : plan.lanes[0].entries) entry.length = Micros(20);
  plan.lanes[0].entries[1].offset = Micros(20);
  const Status refused = Validate(plan, question->input);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("need 4 MB ('a' 2.5, 'b' 1.5); it has 3"));
}

TEST(LaneLayout, LanesThatWereSetAtTheStartFollowNoPlan) {
  testing::HarnessOptions options;
  options.profile = FlatProfile(kNames, 8, 0.01);
  Harness h(std::move(options));
  h.runtime->Start();
  EXPECT_EQ(h.runtime->Adopt(Whole(), kNames).error().code, ErrorCode::kUnimplemented);
}

// Plans come one after another, in any order, while clients send.
class LaneLayoutSoak : public ::testing::TestWithParam<int> {
 protected:
  LaneLayoutSoak() : h_(HalvesAndWhole()) {}

  const std::uint64_t seed_ = static_cast<std::uint64_t>(GetParam());
  Harness h_;
  testing::SoakClients clients_{*h_.runtime, kNames, seed_};
};

TEST_P(LaneLayoutSoak, EveryCallIsAnsweredOnceWhileTheDeviceIsSplitAnew) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  h_.runtime->Start();
  for (const std::string& name : kNames) ASSERT_TRUE(h_.runtime->Serve(FloatModel(name)));
  ASSERT_TRUE(h_.runtime->Adopt(Whole(), kNames));
  constexpr int kClients = 2;
  constexpr int kCalls = 300;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] { clients_.Run(client, kCalls); });
  }
  std::atomic<bool> stop{false};
  std::thread planner([&] {
    Rng rng = Rng::Stream(seed_, "plans");
    const Plan plans[] = {Whole(), Halves(), OtherHalves()};
    for (int adopted = 0; !stop.load() || adopted < 20; ++adopted) {
      EXPECT_TRUE(h_.runtime->Adopt(plans[rng.Below(3)], kNames));
    }
  });
  for (std::thread& client : clients) client.join();
  stop.store(true);
  planner.join();
  h_.runtime->Stop(Seconds(1));
  EXPECT_EQ(clients_.answered(), kClients * kCalls);
  EXPECT_EQ(clients_.wrong(), 0);
  EXPECT_EQ(h_.engine.loaded(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LaneLayoutSoak, ::testing::Range(1, 4));

}  // namespace
}  // namespace tactus
