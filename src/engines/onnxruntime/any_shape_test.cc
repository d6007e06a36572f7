// Graphs that state no shape of a tensor. Taken for a scalar, [1] would come back as [], and every
// other shape would be refused.
#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "engines/onnxruntime/engine_fixture_for_test.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;
using testing::Row;
using testing::RunBatch;
using testing::Values;

// tests/data/shapeless.onnx: x of any shape -> y: twice x.
ModelSpec Shapeless(int max_batch) {
  ModelSpec spec{.name = "shapeless", .max_batch = max_batch};
  const std::filesystem::path root = kSourceDir;
  spec.exits = {{"1", root / "tests/data/shapeless.onnx"}};
  return spec;
}

using OnnxAnyShape = OnnxEngineFixture;

TEST_F(OnnxAnyShape, EveryShapeIsTakenAndAnsweredAsItIs) {
  ModelSpec spec = Shapeless(-1);
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(spec.max_batch, 0);  // nobody knows of a dimension that could be one
  for (const auto* side : {&spec.inputs, &spec.outputs}) {
    ASSERT_EQ(side->size(), 1u);
    EXPECT_TRUE(side->front().any_shape);
    EXPECT_EQ(side->front().dims, Shape{-1});
  }
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{2, 1, 3}, Shape{0, 4}}) {
    std::vector<float> values(static_cast<std::size_t>(*ElementCount(shape)), 4);
    std::vector<Row> rows(1);
    rows[0].Add<float>(shape, values);
    const BatchResult result = RunBatch(*engine_, *model, rows);
    ASSERT_TRUE(result.status) << result.status.error().message;
    EXPECT_EQ(result.output->tensors[0].shape, shape);
    for (float& value : values) value = 8;
    EXPECT_EQ(Values<float>(result.output->tensors[0].Row(0, 1)), values);
  }
}

TEST_F(OnnxAnyShape, WhatAConfigurationStatesHolds) {
  ModelSpec spec = Shapeless(4);
  spec.inputs = {{"x", DataType::kFp32, {-1, 3}}};
  spec.outputs = {{"y", DataType::kFp32, {-1, 3}}};
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(spec.max_batch, 4);
  EXPECT_EQ(spec.inputs[0].dims, (Shape{-1, 3}));
  EXPECT_FALSE(spec.inputs[0].any_shape);
  std::vector<Row> rows(2);
  rows[0].Add<float>({1, 3}, {1, 2, 3});
  rows[1].Add<float>({1, 3}, {4, 5, 6});
  const BatchResult result = RunBatch(*engine_, *model, rows);
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_EQ(result.output->tensors[0].shape, (Shape{2, 3}));
  spec.inputs[0].type = DataType::kInt64;
  EXPECT_THAT(LoadError(spec).message, HasSubstr("input 'x' is FP32"));
}

// A configuration that was made for another graph of the model.
TEST_F(OnnxAnyShape, TheGraphsOwnShapeCountsWhereItHasOne) {
  ModelSpec spec = Shapeless(0);
  spec.exits[0].graph = std::filesystem::path(kSourceDir) / "tests/data/single.onnx";
  spec.inputs = {{.name = "x", .type = DataType::kInt64, .dims = {-1}, .any_shape = true}};
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(spec.inputs[0].any_shape);
  EXPECT_EQ(spec.inputs[0].dims, Shape{3});
}

}  // namespace
}  // namespace tactus
