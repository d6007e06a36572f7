// What the runtime counts on, asked of the engine of operators: the conformance tests of the other
// engines run early exits in batches, which it does not have.
#include "engines/op/op_engine.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/registry.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

using testing::Answers;
using ::testing::HasSubstr;
using testing::Row;
using testing::RunBatch;
using testing::Values;

class OpEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    engine_ = MakeEngine(kHostPlatform, {}).value();
    spec_.name = "best";
    spec_.parameters = {{"op", "top_k"}, {"top_k.k", "2"}};
    model_ = engine_->Load(spec_, LaneSpec{}).value();
  }

  static Row Scores() { return Row().Add<float>({1, 4}, {1, 5, 3, 5}); }

  std::unique_ptr<Engine> engine_;
  ModelSpec spec_;
  ModelHandle model_;
};

TEST_F(OpEngine, CompletesTheModelAndAnswersAfterItAndTheRequestAreGone) {
  ASSERT_EQ(spec_.inputs.size(), 1u);
  ASSERT_EQ(spec_.outputs.size(), 2u);
  ASSERT_EQ(spec_.exits.size(), 1u);
  const BatchResult result = RunBatch(*engine_, model_, Scores());
  ASSERT_TRUE(result.status) << result.status.error().message;
  engine_->Unload(model_);
  engine_.reset();
  EXPECT_EQ(result.output->tensors[0].shape, (Shape{1, 2}));
  EXPECT_EQ(Values<std::int32_t>(result.output->tensors[0].data), (std::vector<int>{1, 3}));
  EXPECT_EQ(Values<float>(result.output->tensors[1].data), (std::vector<float>{5, 5}));
}

TEST_F(OpEngine, TakesBytesThatLieAtNoElementsBoundary) {
  const std::vector<float> scores{1, 5, 3, 5};
  std::vector<std::byte> shifted(1 + scores.size() * sizeof(float));
  std::memcpy(shifted.data() + 1, scores.data(), scores.size() * sizeof(float));
  const Shape shape{1, 4};
  const TensorView view{shifted.data() + 1, shifted.size() - 1, shape};
  const RowInputs row{{&view, 1}, nullptr};
  Answers answers;
  engine_->Submit(model_, {BatchId{1}, ModelId{0}, ExitId{0}, {&row, 1}}, answers);
  const BatchResult result = answers.Wait(BatchId{1});
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_EQ(Values<std::int32_t>(result.output->tensors[0].data), (std::vector<int>{1, 3}));
}

TEST_F(OpEngine, AnErrorNamesTheModelAndTheOperator) {
  const BatchResult few = RunBatch(*engine_, model_, Row().Add<float>({1, 1}, {1}));
  ASSERT_FALSE(few.status);
  EXPECT_EQ(few.status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(few.status.error().message, "model 'best': operator 'top_k': the best 2 of 1 classes");
  std::vector<Row> two;
  two.push_back(Scores());
  two.push_back(Scores());
  EXPECT_THAT(RunBatch(*engine_, model_, two).status.error().message, HasSubstr("one call"));
}

TEST_F(OpEngine, RunsOnSeveralLanesAndUnloadsInBetween) {
  Answers answers;
  std::atomic<std::uint64_t> next{0};
  constexpr std::uint64_t kBatches = 200;
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < 3; ++lane) {
    lanes.emplace_back([&] {
      for (std::uint64_t id = next++; id < kBatches; id = next++) {
        Row row = Scores();
        const RowInputs inputs = row.inputs();
        engine_->Submit(model_, {BatchId{id}, ModelId{0}, ExitId{0}, {&inputs, 1}}, answers);
        const BatchResult result = answers.Wait(BatchId{id});
        if (!result.status) {
          EXPECT_EQ(result.status.error().code, ErrorCode::kUnavailable);
        }
      }
    });
  }
  while (next < kBatches / 4) std::this_thread::yield();
  engine_->Unload(model_);
  for (std::thread& lane : lanes) lane.join();
  for (std::uint64_t id = 0; id < kBatches; ++id) EXPECT_EQ(answers.times(BatchId{id}), 1);
}

TEST_F(OpEngine, ASampleIsWhatTheModelTakes) {
  ModelSpec spec;
  spec.name = "picture";
  spec.parameters = {{"op", "decode_jpeg"}, {"decode_jpeg.from", "string"}};
  const ModelHandle model = engine_->Load(spec, LaneSpec{}).value();
  const std::vector<SampleTensor> samples = engine_->Sample(model);
  ASSERT_EQ(samples.size(), 1u);
  const BatchResult result =
      RunBatch(*engine_, model, Row().AddBytes(samples[0].shape, samples[0].bytes));
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_EQ(result.output->tensors[0].shape, (Shape{576, 768, 3}));
}

TEST_F(OpEngine, ABatchIsOneItem) {
  spec_.max_batch = 1;
  spec_.inputs = {{"scores", DataType::kFp32, {-1, 4}}};
  spec_.outputs = {{"classes", DataType::kInt32, {-1, 2}}};
  const auto one = engine_->Load(spec_, LaneSpec{});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(RunBatch(*engine_, *one, Scores()).output->tensors[0].shape, (Shape{1, 2}));
  ModelSpec lines;
  lines.name = "lines";
  lines.max_batch = 1;
  lines.parameters = {{"op", "nanodet"}, {"nanodet.strides", "8"}};
  const auto refused = engine_->Load(lines, LaneSpec{});
  ASSERT_TRUE(refused) << refused.error().message;
  Row none = Row().Add<float>({1, 124, 1, 1}, std::vector<float>(124, -9));
  none.Add<float>({4}, {0, 0, 1, 1});
  EXPECT_THAT(RunBatch(*engine_, *refused, std::move(none)).status.error().message,
              HasSubstr("its operators made [0,4] of one row; set max_batch_size to 0"));
}

TEST_F(OpEngine, RefusesAModelWithEarlyExits) {
  ModelSpec spec = spec_;
  spec.exits.resize(2);
  const auto refused = engine_->Load(spec, LaneSpec{});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no early exits"));
}

}  // namespace
}  // namespace tactus
