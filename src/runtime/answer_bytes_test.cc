// Answers that clients do not take must count in the server's memory, and each byte must be given
// back once, however its call ends: else one slow reader takes all memory, or a server refuses
// calls for ever.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/harness_test.h"

namespace tactus {
namespace {

using testing::FlatProfile;
using testing::FloatModel;
using testing::Harness;
using testing::SendInOneBatch;

constexpr std::size_t kAnswerRow =
    2 * sizeof(float);  // bytes that a row of FloatModel has, and answers

testing::HarnessOptions LittleMemory(std::size_t pending_bytes = std::size_t{1} << 20) {
  testing::HarnessOptions options;
  options.policy = "fifo:batch=8";
  options.profile = FlatProfile({"m"}, 8, 0.05);
  options.runtime.pending_bytes = pending_bytes;
  return options;
}

struct AnswerHarness : Harness {
  explicit AnswerHarness(testing::HarnessOptions options = LittleMemory())
      : Harness(std::move(options)) {
    runtime->Start();
    EXPECT_TRUE(runtime->Serve(FloatModel("m")));
  }
  std::size_t held() const { return runtime->answer_bytes(); }
};

TEST(AnswerBytes, NewCallsAreRefusedWhileAnswersFillTheMemory) {
  AnswerHarness h(LittleMemory(2 * kAnswerRow));
  const std::size_t first = h.Send("m", {1, 2, 3, 4}, {2, 2});
  h.replies.Await(first);
  EXPECT_EQ(h.runtime->input_bytes(), 0u);
  EXPECT_EQ(h.held(), 2 * kAnswerRow);
  const InferReply refused = h.replies.Take(h.Send("m", {5, 6}, {1, 2}));
  ASSERT_FALSE(refused.status);
  EXPECT_EQ(refused.status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.status.error().message.find("answers"), std::string::npos);
  EXPECT_TRUE(h.replies.Take(first).status);
  EXPECT_EQ(h.held(), 0u);
  EXPECT_TRUE(h.replies.Take(h.Send("m", {5, 6}, {1, 2})).status);
}

// A later step of a pipeline would lose what the steps before it have done.
TEST(AnswerBytes, WhatHasBegunIsNotRefusedForThem) {
  AnswerHarness h(LittleMemory(2 * kAnswerRow));
  const std::size_t first = h.Send("m", {1, 2, 3, 4}, {2, 2});
  h.replies.Await(first);
  h.begun = true;
  EXPECT_TRUE(h.replies.Take(h.Send("m", {5, 6}, {1, 2})).status);
  EXPECT_FALSE(h.replies.Take(h.Send("m", {1, 2, 3, 4, 5, 6}, {3, 2})).status) << "its own inputs";
}

// The answer to one of them keeps the memory of all.
TEST(AnswerBytes, ABatchCountsWholeUntilItsLastCallLetsGo) {
  AnswerHarness h;
  const std::vector<std::size_t> calls = SendInOneBatch(h, {1, 2, 3});
  h.replies.Take(0);
  EXPECT_EQ(h.held(), 3 * kAnswerRow);
  h.replies.Take(calls[0]);
  h.replies.Take(calls[2]);
  EXPECT_EQ(h.held(), 3 * kAnswerRow);
  h.replies.Take(calls[1]);
  EXPECT_EQ(h.held(), 0u);
}

TEST(AnswerBytes, ACallOfSeveralBatchesHoldsThemAll) {
  AnswerHarness h;
  const std::size_t call = h.Send("m", std::vector<float>(40, 1), {20, 2});
  h.replies.Await(call);
  EXPECT_EQ(h.held(), 20 * kAnswerRow);
  h.replies.Take(call);
  EXPECT_EQ(h.held(), 0u);
}

TEST(AnswerBytes, WhatNobodyWaitsForIsLetGo) {
  AnswerHarness h;
  h.engine.batches.Close();
  CallId running = 0, waiting = 0;
  h.Send("m", {1, 2}, {1, 2}, {}, &running);
  h.engine.batches.AwaitWaiting(1);
  h.Send("m", {1, 2}, {1, 2}, {}, &waiting);
  h.runtime->Cancel(running);
  h.runtime->Cancel(waiting);
  h.replies.Await(1);  // so the cancellation before it has been taken too
  h.engine.batches.Open();
  for (const std::size_t call : {0, 1}) {
    EXPECT_EQ(h.replies.Take(call).served.outcome, Outcome::kCancelled);
  }
  EXPECT_EQ(h.held(), 0u);
}

TEST(AnswerBytes, RowsThatRunApartCountAndThoseThatFailDoNot) {
  AnswerHarness h;
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    for (const RowInputs& row : job.rows) {
      float first = 0;
      std::memcpy(&first, row.inputs[0].data, sizeof first);
      if (first < 0) return Internal("index -1 is out of range");
    }
    return {};
  };
  const std::vector<std::size_t> calls = SendInOneBatch(h, {1, -2, 3});
  h.replies.Take(0);
  EXPECT_EQ(h.held(), 2 * kAnswerRow);
  EXPECT_FALSE(h.replies.Take(calls[1]).status);
  for (const std::size_t i : {0, 2}) EXPECT_TRUE(h.replies.Take(calls[i]).status);
  EXPECT_EQ(h.held(), 0u);
}

TEST(AnswerBytes, AnAnswerMayOutliveTheRuntime) {
  InferReply reply;
  {
    AnswerHarness h;
    reply = h.replies.Take(h.Send("m", {1, 2}, {1, 2}));
  }
  EXPECT_EQ(testing::Floats(reply.outputs[0]), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace tactus
