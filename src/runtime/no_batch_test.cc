// A batch that is none: without this, answers would be stitched together of rows whose batch had
// another shape, and callers of a model that nobody declared to batch would get errors.
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/harness_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;
using testing::SendInOneBatch;

bool SeveralRows(const BatchJob& job) { return job.rows.size() > 1; }

struct Log {
  std::mutex mutex;
  std::string text;
};

testing::HarnessOptions OneLaneThatLogs(Log& log) {
  testing::HarnessOptions options;
  options.policy = "fifo:batch=8";
  options.profile = FlatProfile({"m"}, 8, 0.05);
  options.log = [&log](const std::string& line) {
    const std::lock_guard lock(log.mutex);
    log.text += line + "\n";
  };
  return options;
}

ModelSpec Assumed() {
  ModelSpec spec = FloatModel("m");
  spec.batch_origin = BatchOrigin::kAssumed;
  return spec;
}

// All calls of one batch get their own answer; the model serves on without batches.
void ExpectServedWhole(Harness& h, Log& log) {
  const auto calls = SendInOneBatch(h, {1, 2, 3, 4});
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const InferReply& reply = h.replies.Await(calls[i]);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(static_cast<float>(i + 1), 7));
    EXPECT_EQ(h.replies.times(calls[i]), 1u);
  }
  const auto now = h.runtime->Find("m", -1);
  ASSERT_TRUE(now);
  EXPECT_EQ((*now)->max_batch, 0);
  EXPECT_EQ((*now)->batch_origin, BatchOrigin::kDisproved);
  EXPECT_TRUE((*now)->rows_in_front);
  EXPECT_TRUE((*now)->parameters.contains("batching_stopped"));
  const auto statistics = h.runtime->Statistics("m", -1);
  ASSERT_TRUE(statistics);
  EXPECT_TRUE(statistics->at(0).batching_stopped);
  h.runtime->Stop(Seconds(10));
  EXPECT_THAT(log.text, HasSubstr("model 'm' runs in batches no more"));
}

TEST(NoBatch, AnAssumedOneThatComesOutMisshapenIsServedWhole) {
  Log log;
  Harness h(OneLaneThatLogs(log));
  h.engine.misshapen = SeveralRows;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(Assumed()));
  ExpectServedWhole(h, log);
}

TEST(NoBatch, AnAssumedOneWhoseRowsRunWellAloneAndNotTogetherIsServedWhole) {
  Log log;
  Harness h(OneLaneThatLogs(log));
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    return SeveralRows(job) ? Status(Internal("cannot be reshaped")) : Status();
  };
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(Assumed()));
  ExpectServedWhole(h, log);
}

// One bad row says nothing of the batch.
TEST(NoBatch, ABadRowDoesNotCostAnAssumedBatch) {
  Log log;
  Harness h(OneLaneThatLogs(log));
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    for (const RowInputs& row : job.rows) {
      float first = 0;
      std::memcpy(&first, row.inputs[0].data, sizeof first);
      if (first < 0) return Internal("index -1 is out of range");
    }
    return {};
  };
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(Assumed()));
  const auto calls = SendInOneBatch(h, {1, -2, 3});
  EXPECT_TRUE(h.replies.Await(calls[0]).status);
  EXPECT_FALSE(h.replies.Await(calls[1]).status);
  EXPECT_TRUE(h.replies.Await(calls[2]).status);
  EXPECT_EQ((*h.runtime->Find("m", -1))->max_batch, 8);
}

// Its owner said that it is a batch; the callers are not to blame if it is none.
TEST(NoBatch, ADeclaredOneThatComesOutMisshapenIsServedWhole) {
  Log log;
  Harness h(OneLaneThatLogs(log));
  h.engine.misshapen = SeveralRows;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  ExpectServedWhole(h, log);
  EXPECT_THAT(log.text, HasSubstr("it was declared to"));
}

// Whether all rows fail together may have other reasons: its owner's word counts.
TEST(NoBatch, ADeclaredOneWhoseRowsRunWellAloneAndNotTogetherStays) {
  Log log;
  Harness h(OneLaneThatLogs(log));
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    return SeveralRows(job) ? Status(Internal("out of memory")) : Status();
  };
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  for (const std::size_t call : SendInOneBatch(h, {1, 2, 3})) {
    EXPECT_TRUE(h.replies.Await(call).status);
  }
  EXPECT_EQ((*h.runtime->Find("m", -1))->max_batch, 8);
}

// What no made-up row could show, the first call does; the model is tried once more, not for ever.
TEST(NoBatch, AModelThatNobodyCouldTryIsTriedWithTheShapesOfItsFirstCall) {
  Log log;
  Harness h(OneLaneThatLogs(log));
  h.engine.tries = true;
  h.engine.assumes = 4;
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    return job.rows[0].inputs[0].shape[1] == 77 ? Status() : Internal("it takes 77 numbers");
  };
  h.runtime->Start();
  ModelSpec spec = FloatModel("m");
  spec.inputs[0].dims = spec.outputs[0].dims = {-1, -1};
  spec.max_batch = -1;
  ASSERT_TRUE(h.runtime->Serve(spec));
  EXPECT_EQ((*h.runtime->Find("m", -1))->max_batch, 0);
  EXPECT_THAT(log.text, HasSubstr("could not be tried"));
  EXPECT_THAT(log.text, HasSubstr("profile_shape"));
  EXPECT_THAT(log.text, ::testing::Not(HasSubstr("does not run in batches")));
  const auto call = h.Send("m", std::vector<float>(77, 5), {1, 77});
  ASSERT_TRUE(h.replies.Await(call).status);
  while ((*h.runtime->Find("m", -1))->max_batch == 0) std::this_thread::yield();
  EXPECT_EQ((*h.runtime->Find("m", -1))->max_batch, 4);
}

// A batch that was declared is tried then too, and stays what it was declared to be.
TEST(NoBatch, ADeclaredBatchThatNobodyCouldTryIsTriedWithTheShapesOfItsFirstCall) {
  Log log;
  Harness h(OneLaneThatLogs(log));
  h.engine.tries = true;
  std::atomic<int> of_77{0};
  h.engine.verdict = [&](const std::string&, const BatchJob& job) -> Status {
    if (job.rows[0].inputs[0].shape[1] != 77) return Internal("it takes 77 numbers");
    ++of_77;
    return {};
  };
  h.runtime->Start();
  ModelSpec spec = FloatModel("m");
  spec.inputs[0].dims = spec.outputs[0].dims = {-1, -1};
  spec.batch_place = "m/config.pbtxt:3:1";
  ASSERT_TRUE(h.runtime->Serve(spec));
  EXPECT_THAT(log.text, HasSubstr("m/config.pbtxt:3:1: max_batch_size is 8, and whether its rows"));
  const auto call = h.Send("m", std::vector<float>(77, 5), {1, 77});
  ASSERT_TRUE(h.replies.Await(call).status);
  while (of_77 < 10) std::this_thread::yield();  // the trial
  EXPECT_EQ((*h.runtime->Find("m", -1))->max_batch, 8);
}

}  // namespace
}  // namespace tactus
