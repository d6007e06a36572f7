// Calls that leave out an optional input, beside those that have it.
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/harness_test.h"
#include "runtime/runtime.h"

namespace tactus {
namespace {

using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;

testing::HarnessOptions ProfileOfA() {
  testing::HarnessOptions options;
  options.profile = FlatProfile({"a"}, 8, 0.001);
  return options;
}

// The engine runs a batch with an input or without it: a batch of both would answer some row with
// another's input, or with none.
TEST(OptionalInputs, AreOfAllRowsOfABatchOrOfNone) {
  Harness h(ProfileOfA());
  h.runtime->Start();
  ModelSpec spec = FloatModel("a");
  spec.inputs.push_back({"bias", DataType::kFp32, {-1, 2}, {}, true});
  ASSERT_TRUE(h.runtime->Serve(spec));
  std::atomic<int> with{0}, without{0}, mixed{0};
  h.engine.verdict = [&](const std::string&, const BatchJob& job) -> Status {
    const bool absent = job.rows[0].inputs[1].absent;
    for (const RowInputs& row : job.rows) {
      ++(row.inputs[1].absent ? without : with);
      if (row.inputs[1].absent != absent) ++mixed;
    }
    return {};
  };
  const auto send = [&](float value, bool biased) {
    auto bytes = std::make_shared<std::vector<float>>(2, value);
    InferCall call;
    call.model = *h.runtime->Find("a", -1);
    call.inputs = {{"x", DataType::kFp32, {1, 2}, std::as_bytes(std::span(*bytes))},
                   {"bias", DataType::kFp32, {1, 2}, std::as_bytes(std::span(*bytes))}};
    if (!biased) call.inputs[1] = {.name = "bias", .type = DataType::kFp32, .absent = true};
    call.keepalive = bytes;
    call.received = std::chrono::steady_clock::now();
    call.reply = h.replies.Expect();
    h.runtime->Infer(std::move(call));
  };
  h.engine.batches.Close();
  send(0, true);
  h.engine.batches.AwaitWaiting(1);
  for (int i = 1; i < 8; ++i) send(static_cast<float>(i), i % 2 == 0);
  h.engine.batches.Open();
  for (std::size_t i = 0; i < 8; ++i) {
    const InferReply& reply = h.replies.Await(i);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(Floats(reply.outputs[0]), ::testing::Each(static_cast<float>(i)));
  }
  EXPECT_EQ(with, 4);
  EXPECT_EQ(without, 4);
  EXPECT_EQ(mixed, 0);
}

TEST(OptionalInputs, OthersAreNeededWhicheverServiceCalls) {
  Harness h(ProfileOfA());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  InferCall call;
  call.model = *h.runtime->Find("a", -1);
  call.inputs = {{.name = "x", .type = DataType::kFp32, .absent = true}};
  call.reply = h.replies.Expect();
  h.runtime->Infer(std::move(call));
  EXPECT_THAT(h.replies.Await(0).status.error().message,
              HasSubstr("input 'x': is required, and the call has none"));
}

}  // namespace
}  // namespace tactus
