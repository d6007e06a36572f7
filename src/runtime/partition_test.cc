// A device that is split anew while it serves: nothing is lost, and models are where the plan says.
#include "runtime/partition.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "runtime/harness_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

testing::HarnessOptions Options() {
  testing::HarnessOptions options;
  options.policy = "planned";
  options.runtime.partition = PartitionOptions{
      .cores = 2,
      .shares = {{0.5, FlatProfile(kNames, 8, 0.02)}, {1, FlatProfile(kNames, 8, 0.01)}}};
  return options;
}

class PartitionTest : public ::testing::Test {
 protected:
  PartitionTest() : h_(Options()) {
    h_.runtime->Start();
    for (const std::string& name : kNames) EXPECT_TRUE(h_.runtime->Serve(FloatModel(name)));
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
  Harness h_;
};

TEST_F(PartitionTest, ModelsAreLoadedWhereThePlanSaysAndNowhereElse) {
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

TEST_F(PartitionTest, AShareIsThreadsOfTheEngine) {
  h_.engine.ForgetLanes();
  Adopt(Whole());
  for (const LaneSpec& lane : h_.engine.lanes()) EXPECT_EQ(lane.threads, 2);
  h_.engine.ForgetLanes();
  Adopt(Halves());
  EXPECT_EQ(h_.engine.lanes().size(), 3u);
  for (const LaneSpec& lane : h_.engine.lanes()) EXPECT_EQ(lane.threads, 1);
}

TEST_F(PartitionTest, WhatRunsOnAnOldLaneEndsAndWhatWaitsGoesToTheNewOnes) {
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

TEST_F(PartitionTest, APlanThatDoesNotFitChangesNothing) {
  Adopt(Whole());
  const Plan three{.lanes = {LaneOf(0, {0}), LaneOf(0, {1}), LaneOf(0, {2})}};
  const Status refused = h_.runtime->Adopt(three, kNames);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  ExpectServed();
}

TEST(Partition, AModelThatCannotBeLoadedIsMissingAndTheOthersServe) {
  Harness h(Options());
  h.runtime->Start();
  for (const std::string& name : kNames) ASSERT_TRUE(h.runtime->Serve(FloatModel(name)));
  h.engine.broken_models.insert("b");
  ASSERT_TRUE(h.runtime->Adopt(Halves(), kNames));
  EXPECT_EQ(h.engine.loaded(), 2u);
  EXPECT_TRUE(h.replies.Await(h.Send("a", {1, 2}, {1, 2})).status);
  EXPECT_TRUE(h.replies.Await(h.Send("c", {1, 2}, {1, 2})).status);
  EXPECT_FALSE(h.replies.Await(h.Send("b", {1, 2}, {1, 2}, Millis(1))).status);
}

TEST(Partition, LanesThatWereSetAtTheStartFollowNoPlan) {
  testing::HarnessOptions options;
  options.profile = FlatProfile(kNames, 8, 0.01);
  Harness h(std::move(options));
  h.runtime->Start();
  EXPECT_EQ(h.runtime->Adopt(Whole(), kNames).error().code, ErrorCode::kUnimplemented);
}

// Plans come one after another, in any order, while clients send.
class PartitionSoak : public ::testing::TestWithParam<int> {
 protected:
  PartitionSoak() : h_(Options()) {}

  // One call after the other, each awaited.
  void RunClient(int client, int calls) {
    Rng rng = Rng::Stream(seed_, "client/" + std::to_string(client));
    for (int i = 0; i < calls; ++i) {
      auto values = std::make_shared<std::vector<float>>(2, static_cast<float>(rng.Below(1000)));
      InferCall call;
      call.model = h_.runtime->Find(kNames[rng.Below(3)], -1).value();
      call.inputs = {{"x", DataType::kFp32, {1, 2}, std::as_bytes(std::span(*values))}};
      call.keepalive = values;
      call.received = std::chrono::steady_clock::now();
      auto answers = std::make_shared<std::atomic<int>>(0);
      call.reply = [this, values, answers](InferReply&& reply) {
        if (!reply.status || Floats(reply.outputs[0]) != *values) ++wrong_;
        if (answers->fetch_add(1) > 0) ++wrong_;
        ++answered_;
        answers->notify_all();
      };
      h_.runtime->Infer(std::move(call));
      answers->wait(0);
    }
  }

  const std::uint64_t seed_ = static_cast<std::uint64_t>(GetParam());
  Harness h_;
  std::atomic<int> answered_{0};
  std::atomic<int> wrong_{0};
};

TEST_P(PartitionSoak, EveryCallIsAnsweredOnceWhileTheDeviceIsSplitAnew) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  h_.runtime->Start();
  for (const std::string& name : kNames) ASSERT_TRUE(h_.runtime->Serve(FloatModel(name)));
  ASSERT_TRUE(h_.runtime->Adopt(Whole(), kNames));
  constexpr int kClients = 2;
  constexpr int kCalls = 300;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] { RunClient(client, kCalls); });
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
  EXPECT_EQ(answered_, kClients * kCalls);
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(h_.engine.loaded(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PartitionSoak, ::testing::Range(1, 4));

}  // namespace
}  // namespace tactus
