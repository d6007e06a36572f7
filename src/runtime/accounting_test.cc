// Whatever fails, every call is answered exactly once and the books add up.
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "runtime/harness_test.h"

namespace tactus {
namespace {

using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;

// Counts what the observer is told.
class Books final : public Observer {
 public:
  void OnAnswered(const ModelSpec&, const RequestRecord& record, int rows) override {
    ++outcomes[static_cast<std::size_t>(record.outcome)];
    this->rows += rows;
  }
  void OnRefused(std::string_view, ErrorCode) override { ++refused; }
  void OnBatch(const ModelSpec&, const BatchRecord& batch) override {
    EXPECT_LE(batch.decided, batch.started);
    EXPECT_LE(batch.started, batch.ended);
    if (batch.status == BatchStatus::kOk) batched_rows += batch.batch;
    if (batch.measured_slowdown > 0 && batch.predicted_slowdown >= 1) ++slowdowns;
  }
  std::int64_t answered() const {
    std::int64_t sum = 0;
    for (const auto& count : outcomes) sum += count;
    return sum;
  }

  std::array<std::atomic<std::int64_t>, kOutcomes> outcomes{};
  std::atomic<std::int64_t> refused{0};
  std::atomic<std::int64_t> rows{0};
  std::atomic<std::int64_t> batched_rows{0};
  std::atomic<std::int64_t> slowdowns{0};  // predicted and measured
};

struct Chaos {
  Harness& h;
  std::uint64_t seed;
  std::atomic<int> answered{0};
  std::atomic<int> wrong{0};

  // One client: calls of one to five rows with and without deadlines, some cancelled at once.
  void RunClient(int client, int calls) {
    Rng rng = Rng::Stream(seed, "client/" + std::to_string(client));
    for (int i = 0; i < calls; ++i) {
      const auto model = h.runtime->Find(rng.Below(2) == 0 ? "a" : "b", -1);
      const std::size_t rows = 1 + rng.Below(5);
      auto values = std::make_shared<std::vector<float>>(rows * 2);
      for (float& value : *values) value = static_cast<float>(rng.Below(1000));
      InferCall call;
      if (model) call.model = *model;
      call.inputs = {{"x",
                      DataType::kFp32,
                      {static_cast<std::int64_t>(rows), 2},
                      std::as_bytes(std::span(*values))}};
      call.keepalive = values;
      call.received = std::chrono::steady_clock::now();
      if (rng.Below(3) == 0) call.limit.Tighten(Micros(50 + rng.Below(3000)));
      auto times = std::make_shared<std::atomic<int>>(0);
      call.reply = [this, values, times](InferReply&& reply) {
        if (times->fetch_add(1) > 0) ++wrong;
        if (reply.status && Floats(reply.outputs[0]) != *values) ++wrong;
        ++answered;
      };
      const CallId id = h.runtime->Infer(std::move(call));
      if (rng.Below(4) == 0) h.runtime->Cancel(id);
    }
  }
  // Replaces a model again and again, and now and then takes it away for a moment.
  void RunOperator(int turns) {
    for (int i = 0; i < turns; ++i) {
      EXPECT_TRUE(h.runtime->Serve(FloatModel("b", 4)));
      if (i % 3 == 0) {
        EXPECT_TRUE(h.runtime->Unload("b"));
      }
    }
  }
};

class Accounting : public ::testing::TestWithParam<int> {};

TEST_P(Accounting, EveryCallIsAnsweredOnceThroughFailuresCancelsUnloadsAndStop) {
  const std::uint64_t seed = static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  Books books;
  testing::HarnessOptions options;
  options.runtime.lanes = 1 + GetParam() % 2;
  options.runtime.slots = 1 + GetParam() % 3;
  options.runtime.queue_capacity = 16;
  options.runtime.call_capacity = 24;
  options.runtime.unload_grace = Micros(200);
  options.policy = GetParam() % 2 == 0 ? "edgeserving" : "early-exit-edf";
  options.profile = FlatProfile({"a", "b"}, 8, 0.01);
  options.observer = &books;
  Harness h(std::move(options));
  h.engine.terminates = true;
  // One batch in eight fails, by its id.
  h.engine.verdict = [seed](const std::string&, const BatchJob& job) -> Status {
    Rng rng = Rng::Stream(seed, "batch/" + std::to_string(job.id.value()));
    if (job.id.value() < (std::uint64_t{1} << 63) && rng.Below(8) == 0) return Internal("broken");
    return {};
  };
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a", 8)));
  ASSERT_TRUE(h.runtime->Serve(FloatModel("b", 4)));
  constexpr int kClients = 3;
  constexpr int kCalls = 400;
  Chaos chaos{h, seed};
  std::vector<std::thread> threads;
  for (int client = 0; client < kClients; ++client) {
    threads.emplace_back([&chaos, client] { chaos.RunClient(client, kCalls); });
  }
  threads.emplace_back([&chaos] { chaos.RunOperator(12); });
  for (std::thread& thread : threads) thread.join();
  h.runtime->Stop(Duration{});
  EXPECT_EQ(chaos.answered, kClients * kCalls);
  EXPECT_EQ(chaos.wrong, 0);
  EXPECT_EQ(books.answered() + books.refused, kClients * kCalls);
  EXPECT_EQ(h.runtime->calls(), 0u);
  EXPECT_EQ(h.runtime->input_bytes(), 0u);
  EXPECT_EQ(h.runtime->answer_bytes(), 0u);
  EXPECT_EQ(h.engine.loaded(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Accounting, ::testing::Range(1, 7));

// Two that run side by side, then one alone.
TEST(Observers, AreToldWhatThePolicyPredictedOfBatchesThatHadNeighbours) {
  for (const auto& [policy, slowdowns] : {std::pair{"strait", 2}, std::pair{"temporal", 0}}) {
    SCOPED_TRACE(policy);
    Books books;
    testing::HarnessOptions options;
    options.runtime.slots = 2;
    options.policy = policy;
    options.profile = FlatProfile({"a", "b"}, 1, 0.01);
    options.observer = &books;
    Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(FloatModel("a", 1)));
    ASSERT_TRUE(h.runtime->Serve(FloatModel("b", 1)));
    h.engine.batches.Close();
    h.Send("a", {1, 2}, {1, 2});
    h.engine.batches.AwaitWaiting(1);
    h.Send("b", {1, 2}, {1, 2});
    if (slowdowns > 0) h.engine.batches.AwaitWaiting(2);
    h.engine.batches.Open();
    h.replies.AwaitAll();
    h.Send("a", {1, 2}, {1, 2});
    h.replies.AwaitAll();
    h.runtime->Stop(Duration{});
    EXPECT_EQ(books.batched_rows, 3);
    EXPECT_EQ(books.slowdowns, slowdowns);
  }
}

TEST(Overload, EveryRequestIsAnsweredMemoryStaysBoundedAndServiceComesBack) {
  // Batches wait at a gate that opens one at a time, so the runtime sees far more than it can do,
  // without a clock: 2,000 calls for a queue of 32.
  Books books;
  testing::HarnessOptions options;
  options.runtime.queue_capacity = 32;
  options.runtime.call_capacity = 64;
  options.profile = FlatProfile({"a"}, 8, 0.001);
  options.observer = &books;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  h.engine.batches.Close();
  h.Send("a", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  for (int i = 0; i < 2000; ++i) {
    h.Send("a", {1, 2}, {1, 2});
    // One more than there is place for: the reply thread gives a place back before it counts down.
    EXPECT_LE(h.runtime->calls(), 64u + 1u);
    EXPECT_LE(h.runtime->pending(), 32u + 8u);
  }
  // What is refused is answered while the gate is still closed.
  while (h.runtime->calls() > 33) std::this_thread::yield();
  h.engine.batches.Open();
  h.replies.AwaitAll();
  // The one that ran and the 32 that found a place are served, all others were told at once.
  EXPECT_EQ(books.outcomes[static_cast<std::size_t>(Outcome::kMet)], 33);
  EXPECT_EQ(books.outcomes[static_cast<std::size_t>(Outcome::kShed)] + books.refused, 2001 - 33);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(h.replies.Await(h.Send("a", {1, 2}, {1, 2})).status);
  }
}

}  // namespace
}  // namespace tactus
