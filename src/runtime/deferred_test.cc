// Lanes of an engine that keeps its own time: a cluster in one process, hundreds of lanes wide.
#include <filesystem>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/emulated/emulated_engine.h"
#include "runtime/harness_test.h"

namespace tactus {
namespace {

using testing::FloatModel;
using testing::Replies;

constexpr int kLanes = 512;

class DeferredLanes : public ::testing::Test {
 protected:
  // Batches of every exit and size take `length`.
  void Start(Duration length) {
    EmulatedOptions emulated;
    emulated.latencies = [length](const ModelSpec& spec) -> Expected<ProfileTable::ModelRows> {
      const int exits = static_cast<int>(spec.exits.size());
      const auto cells = static_cast<std::size_t>(exits * spec.max_batch);
      return ProfileTable::ModelRows{exits, spec.max_batch, std::vector<Duration>(cells, length)};
    };
    engine_ = MakeEmulatedEngine(std::move(emulated));
    RuntimeParts parts;
    parts.policy = MakePolicy("all-final").value();
    parts.engine_for = [this](std::string_view) -> Expected<Engine*> { return engine_.get(); };
    parts.profile = testing::FlatProfile({"a"}, 4, 1);
    runtime_ =
        std::make_unique<Runtime>(RuntimeOptions{.lanes = kLanes, .pin = false}, std::move(parts));
    runtime_->Start();
    ASSERT_TRUE(runtime_->Serve(FloatModel("a", 4)));
  }
  void Send(int calls) {
    const auto model = runtime_->Find("a", -1).value();
    for (int i = 0; i < calls; ++i) {
      auto bytes = std::make_shared<std::vector<std::byte>>(2 * sizeof(float));
      InferCall call;
      call.inputs = {{"x", DataType::kFp32, {1, 2}, *bytes}};
      call.keepalive = bytes;
      call.received = std::chrono::steady_clock::now();
      call.model = model;
      call.reply = replies_.Expect();
      runtime_->Infer(std::move(call));
    }
  }

  std::unique_ptr<Engine> engine_;
  Replies replies_;
  std::unique_ptr<Runtime> runtime_;
};

std::ptrdiff_t ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// A thread for each lane would be 512 stacks and a scheduler that is busy with waking them.
TEST_F(DeferredLanes, TakeNoThreads) {
  const auto before = ThreadsOfThisProcess();
  Start(Micros(300));
  Send(2000);
  replies_.AwaitAll();
  // The dispatcher, the answers, the engine, the watch over runs, two that bring back what is lost,
  // and one that ThreadSanitizer starts with the first.
  EXPECT_LE(ThreadsOfThisProcess() - before, 7);
  std::int64_t batches = 0;
  for (const LaneLoad& lane : runtime_->lane_loads()) {
    batches += lane.batches;
    EXPECT_GE(lane.busy, Micros(150) * lane.batches);  // never less than half of the profile
  }
  for (std::size_t i = 0; i < replies_.size(); ++i) {
    EXPECT_EQ(replies_.times(i), 1u);
    const InferReply& reply = replies_.Await(i);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_TRUE(reply.served.emulated);
    EXPECT_THAT(testing::Floats(reply.outputs[0]), ::testing::ElementsAre(0, 0));
  }
  EXPECT_GE(batches, 2000 / 4);
  EXPECT_LE(batches, 2000);
  EXPECT_EQ(runtime_->Find("a", -1).value()->platform, "emulated");  // though it said "fake"
}

// A stop must not wait for the ends of batches that nobody waits for.
TEST_F(DeferredLanes, AreStoppedInTheMiddleOfTheirBatches) {
  Start(Seconds(100'000));
  Send(600);
  runtime_->Stop(Duration{});
  for (std::size_t i = 0; i < replies_.size(); ++i) {
    ASSERT_EQ(replies_.times(i), 1u);
    EXPECT_EQ(replies_.Await(i).status.error().code, ErrorCode::kUnavailable);
  }
}

}  // namespace
}  // namespace tactus
