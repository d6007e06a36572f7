// What pipelines start next with the answers of one batch is decided together: one by one, the
// first would run alone on the free lane and the others behind it.
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/harness_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;

// A pipeline of `first` and `second`, as an ensemble runs it.
void SendChain(testing::Harness& h, const std::shared_ptr<const ModelSpec>& first,
               const std::shared_ptr<const ModelSpec>& second) {
  auto bytes = std::make_shared<std::vector<std::byte>>(2 * sizeof(float));
  InferCall call;
  call.inputs = {{"x", DataType::kFp32, {1, 2}, *bytes}};
  call.keepalive = bytes;
  call.received = std::chrono::steady_clock::now();
  call.model = first;
  call.step = StepName{"chain", "first"};
  call.reply = [&h, second, bytes, then = h.replies.Expect()](InferReply&&) {
    InferCall next;
    next.inputs = {{"x", DataType::kFp32, {1, 2}, *bytes}};
    next.keepalive = bytes;
    next.received = std::chrono::steady_clock::now();
    next.model = second;
    next.step = StepName{"chain", "second"};
    next.reply = then;
    h.runtime->Infer(std::move(next));
  };
  h.runtime->Infer(std::move(call));
}

TEST(NextSteps, OfOneBatchAreOneBatch) {
  testing::HarnessOptions options;
  options.profile = FlatProfile({"first", "second"}, 8, 1);
  testing::Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("first")));
  ASSERT_TRUE(h.runtime->Serve(FloatModel("second")));
  const auto first = h.runtime->Find("first", -1);
  const auto second = h.runtime->Find("second", -1);
  ASSERT_TRUE(first && second);
  const std::size_t before = h.engine.seen().size();
  h.engine.batches.Close();
  h.Send("first", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  for (int i = 0; i < 4; ++i) SendChain(h, *first, *second);
  h.engine.batches.Open();
  h.replies.AwaitAll();

  std::vector<std::size_t> rows;
  for (std::size_t i = before; i < h.engine.seen().size(); ++i) {
    rows.push_back(h.engine.seen()[i].rows);
  }
  EXPECT_THAT(rows, ElementsAre(1, 4, 4)) << "what held the lane, the chains' first, their second";
}

}  // namespace
}  // namespace tactus
