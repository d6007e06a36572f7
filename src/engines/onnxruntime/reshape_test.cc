// Graphs whose tensors have another shape than clients send and receive: without `reshape` a graph
// of [batch] alone could not batch at all.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "engines/onnxruntime/engine_fixture_for_test.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Row;
using testing::RunBatch;
using testing::Values;

// tests/data/vector.onnx: x [N], cells [N,M,2] and word [N] give y [N], doubled [N,M,2], same [N].
ModelSpec Vector() {
  ModelSpec spec{.name = "vector", .max_batch = 4};
  spec.inputs = {{"word", DataType::kBytes, {-1, 1}, Shape{-1}},
                 {"x", DataType::kFp32, {-1, 1}, Shape{-1}},
                 {"cells", DataType::kFp32, {-1, 1, -1, 2, 1}, Shape{-1, -1, 2}}};
  spec.outputs = {{"y", DataType::kFp32, {-1, 1, 1}, Shape{-1}},
                  {"doubled", DataType::kFp32, {-1, -1, 1, 2}, Shape{-1, -1, 2}},
                  {"same", DataType::kBytes, {-1, 1}, Shape{-1}}};
  const std::filesystem::path root = kSourceDir;
  spec.exits = {{"1", root / "tests/data/vector.onnx"}};
  return spec;
}

Row RowOf(float x, const std::vector<float>& cells, const std::string& word) {
  const auto pairs = static_cast<std::int64_t>(cells.size() / 2);
  return Row()
      .AddStrings({1, 1}, {word})
      .Add<float>({1, 1}, {x})
      .Add<float>({1, 1, pairs, 2, 1}, cells);
}

using OnnxReshape = OnnxEngineFixture;

TEST_F(OnnxReshape, ABatchOfClientsRowsIsTheGraphsTensor) {
  ModelSpec spec = Vector();
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  for (const std::size_t count : {1u, 3u}) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < count; ++i) {
      const float base = static_cast<float>(i);
      rows.push_back(RowOf(2 + base, {base, 1, 2, 3}, std::string(i, 'w')));
    }
    const BatchResult result = RunBatch(*engine_, *model, rows);
    ASSERT_TRUE(result.status) << result.status.error().message;
    const auto& tensors = result.output->tensors;
    const auto n = static_cast<std::int64_t>(count);
    EXPECT_THAT(tensors[0].shape, ElementsAre(n, 1, 1));
    EXPECT_THAT(tensors[1].shape, ElementsAre(n, 2, 1, 2));
    EXPECT_THAT(tensors[2].shape, ElementsAre(n, 1));
    for (std::size_t i = 0; i < count; ++i) {
      const float base = static_cast<float>(i);
      EXPECT_THAT(Values<float>(tensors[0].Row(i, count)), ElementsAre((2 + base) * (6 + base)));
      EXPECT_THAT(Values<float>(tensors[1].Row(i, count)), ElementsAre(2 * base, 2, 4, 6));
      EXPECT_EQ(tensors[2].Row(i, count).size(), 4 + i);
    }
  }
}

TEST_F(OnnxReshape, AShapeThatIsNotTheClientsIsRefused) {
  ModelSpec spec = Vector();
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  const Row row =
      Row().AddStrings({1, 1}, {"w"}).Add<float>({1}, {1}).Add<float>({1, 1, 1, 2, 1}, {1, 2});
  const BatchResult result = RunBatch(*engine_, *model, row);
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.status.error().message, HasSubstr("input 'x' has shape [1], which is none of "
                                                       "[-1,1]"));
}

TEST_F(OnnxReshape, AnOutputThatComesInAnotherShapeIsAnErrorOfTheModel) {
  ModelSpec spec = Vector();
  // As the graph, which leaves the size open; but clients send two pairs.
  spec.outputs = {{"doubled", DataType::kFp32, {-1, 6}, Shape{-1, 3, 2}}};
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE(RunBatch(*engine_, *model, RowOf(1, {1, 2, 3, 4, 5, 6}, "w")).status);
  const BatchResult result = RunBatch(*engine_, *model, RowOf(1, {1, 2, 3, 4}, "w"));
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code, ErrorCode::kInternal);
  EXPECT_THAT(result.status.error().message,
              HasSubstr("output 'doubled' has shape [1,2,2], which its reshape [-1,3,2] does not"));
}

TEST_F(OnnxReshape, WhatTheGraphKnowsBothShapesKnow) {
  ModelSpec spec = Vector();
  spec.inputs[2].dims = {-1, 1, -1, 1, -1};
  spec.inputs[2].reshape = {-1, -1, -1};
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(spec.inputs[2].dims, (Shape{-1, 1, -1, 1, 2}));
  EXPECT_EQ(spec.inputs[2].reshape, (Shape{-1, -1, 2}));
}

TEST_F(OnnxReshape, AScalarThatIsStatedAsOneElementIsAReshape) {
  const std::filesystem::path root = kSourceDir;
  ModelSpec spec{.name = "scalar", .max_batch = 0};
  spec.exits = {{"1", root / "tests/data/scalar.onnx"}};
  spec.inputs = {{"x", DataType::kFp32, {1}}, {"word", DataType::kBytes, {1, 1}, Shape{}}};
  ASSERT_TRUE(engine_->Load(spec, LaneSpec{}));
  EXPECT_EQ(spec.inputs[0].reshape, Shape{});
  spec.inputs[0].reshape = {1, 1};
  EXPECT_THAT(LoadError(spec).message,
              HasSubstr("input 'x' is FP32 [] in the graph, not FP32 [1,1]"));
}

// Whoever reads the graph's shape and writes it down has the batch twice, or not at all.
TEST_F(OnnxReshape, DimsThatDifferInTheBatchAloneSaySo) {
  const std::filesystem::path root = kSourceDir;
  ModelSpec spec{.name = "strings", .max_batch = 4};
  spec.exits = {{"1", root / "tests/data/strings.onnx"}};
  spec.inputs = {{"text", DataType::kBytes, {-1, -1, 2}}};
  EXPECT_THAT(LoadError(spec).message,
              HasSubstr("input 'text' is BYTES [-1,2] in the graph, not BYTES [-1,-1,2] "
                        "(max_batch_size is 4: leave the batch dimension out of dims, [2])"));
  spec.inputs[0].dims = {-1, 4, -1};
  EXPECT_THAT(LoadError(spec).message, HasSubstr("leave the batch dimension out of dims, [2]"));
  spec.inputs[0].dims = {-1, -1, 3};
  EXPECT_THAT(LoadError(spec).message, Not(HasSubstr("leave")));
  spec.inputs[0].dims = {-1, 2};
  spec.outputs = {{"same", DataType::kBytes, {-1, -1, 2}}};
  EXPECT_THAT(LoadError(spec).message,
              AllOf(HasSubstr("output 'same'"), HasSubstr("leave the batch dimension out")));
  spec.outputs.clear();
  spec.max_batch = 0;
  spec.inputs[0].dims = {2};
  EXPECT_THAT(LoadError(spec).message,
              HasSubstr("(max_batch_size is 0: state the first dimension in dims too, [-1,2])"));
}

// tests/data/rank.onnx declares a scalar, and gives [N,2,2].
TEST_F(OnnxReshape, WhatIsStatedOfAScalarThatIsNoneGoesAsItComes) {
  const std::filesystem::path root = kSourceDir;
  ModelSpec spec{.name = "rank", .max_batch = 0};
  spec.exits = {{"1", root / "tests/data/rank.onnx"}};
  spec.outputs = {{"y", DataType::kFp32, {1}}};
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  const BatchResult result =
      RunBatch(*engine_, *model, Row().Add<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(2, 2, 2));
  EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(OnnxReshape, AReshapeThatTheGraphHasNotIsAnError) {
  ModelSpec spec = Vector();
  spec.inputs[1].reshape.reset();
  EXPECT_THAT(LoadError(spec).message,
              AllOf(HasSubstr("input 'x' is FP32 [-1] in the graph, not FP32 "
                              "[-1,1] (if that is the clients' shape, state `reshape "
                              "{ shape: [] }`);"),
                    HasSubstr("vector.onnx")));
  spec.inputs[1].dims = {-1, 3};
  EXPECT_THAT(LoadError(spec).message, HasSubstr("not FP32 [-1,3]; make"));
  spec = Vector();
  spec.outputs[0].reshape = {-1, 1};
  EXPECT_THAT(LoadError(spec).message,
              HasSubstr("output 'y' is FP32 [-1] in the graph, not FP32 [-1,1] (reshape)"));
}

}  // namespace
}  // namespace tactus
