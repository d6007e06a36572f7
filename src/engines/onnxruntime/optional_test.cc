// Inputs that a request may leave out, because the graph has a default: an initializer that is an
// input too. Were such an input run with a tensor of nothing, answers would be wrong without a
// word.
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
using testing::Row;
using testing::RunBatch;
using testing::Values;

ModelSpec Of(const std::string& graph, int max_batch) {
  ModelSpec spec{.name = graph, .max_batch = max_batch};
  const std::filesystem::path root = kSourceDir;
  spec.exits = {{"1", root / "tests/data" / (graph + ".onnx")}};
  return spec;
}

// tests/data/offset.onnx: y = x * factor + offset + extra, where factor is 2, offset is 10, 20, 30,
// 40 and extra is 0 unless a request says otherwise. Here extra stays as it is.
ModelSpec Offset() {
  ModelSpec spec = Of("offset", 4);
  spec.inputs = {{"offset", DataType::kFp32, {-1, 4}, {}, true},
                 {"x", DataType::kFp32, {-1, 4}},
                 {"factor", DataType::kFp32, {-1, 1}, {}, true}};
  return spec;
}

using OnnxOptional = OnnxEngineFixture;

TEST_F(OnnxOptional, WhatABatchLeavesOutIsTheGraphsDefaultForEachRow) {
  ModelSpec spec = Offset();
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<float> ones(4, 1);
  for (const std::size_t count : {1u, 3u}) {
    for (const bool offset : {false, true}) {
      for (const bool factor : {true, false}) {
        std::vector<Row> rows;
        for (std::size_t i = 0; i < count; ++i) {
          const float base = static_cast<float>(i);
          Row& row = rows.emplace_back();
          offset ? row.Add<float>({1, 4}, {base, 0, 0, 0}) : row.Absent();
          row.Add<float>({1, 4}, ones);
          factor ? row.Add<float>({1, 1}, {5 + base}) : row.Absent();
        }
        const BatchResult result = RunBatch(*engine_, *model, rows);
        ASSERT_TRUE(result.status) << result.status.error().message;
        for (std::size_t i = 0; i < count; ++i) {
          const float base = static_cast<float>(i);
          const float f = factor ? 5 + base : 2;
          const auto y = Values<float>(result.output->tensors[0].Row(i, count));
          if (offset) {
            EXPECT_THAT(y, ElementsAre(f + base, f, f, f));
          } else {
            EXPECT_THAT(y, ElementsAre(f + 10, f + 20, f + 30, f + 40));
          }
        }
      }
    }
  }
}

TEST_F(OnnxOptional, RowsWithAnInputAndWithoutItShareNoBatch) {
  ModelSpec spec = Offset();
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  std::vector<Row> rows(2);
  rows[0].Absent().Add<float>({1, 4}, {1, 1, 1, 1}).Absent();
  rows[1].Absent().Add<float>({1, 4}, {1, 1, 1, 1}).Add<float>({1, 1}, {1});
  const BatchResult result = RunBatch(*engine_, *model, rows);
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.status.error().message,
              HasSubstr("input 'factor': rows with it and without it cannot share a batch"));
}

TEST_F(OnnxOptional, ADefaultThatIsStatedAsRequiredMustBeReplaced) {
  ModelSpec spec = Offset();
  spec.inputs[0].optional = false;
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  const Row row = Row().Add<float>({1, 4}, {1, 2, 3, 4}).Add<float>({1, 4}, {0, 0, 0, 1}).Absent();
  const BatchResult result = RunBatch(*engine_, *model, row);
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(1, 2, 3, 6));
}

TEST_F(OnnxOptional, WhereNothingIsStatedDefaultsAreNoInputs) {
  ModelSpec spec = Of("offset", -1);
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(spec.max_batch, 4);
  ASSERT_EQ(spec.inputs.size(), 1u);
  EXPECT_EQ(spec.inputs[0].name, "x");
  EXPECT_THAT(spec.defaulted, ::testing::UnorderedElementsAre("factor", "offset", "extra"));
  const BatchResult result = RunBatch(*engine_, *model, Row().Add<float>({1, 4}, {1, 1, 1, 1}));
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(12, 22, 32, 42));
}

TEST_F(OnnxOptional, AGraphMayNeedNoInputAtAll) {
  ModelSpec spec = Of("defaults", 0);
  spec.inputs = {{"x", DataType::kInt64, {3}, {}, true}};
  const auto model = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  const BatchResult defaults = RunBatch(*engine_, *model, Row().Absent());
  ASSERT_TRUE(defaults.status) << defaults.status.error().message;
  EXPECT_THAT(Values<std::int64_t>(defaults.output->tensors[0].data), ElementsAre(2, 4, 6));
}

TEST_F(OnnxOptional, WithoutADefaultAnInputCannotBeOptional) {
  ModelSpec spec = Offset();
  spec.inputs[1].optional = true;
  EXPECT_THAT(LoadError(spec).message,
              AllOf(HasSubstr("model 'offset': "), HasSubstr("offset.onnx: input 'x' is optional"),
                    HasSubstr("the graph has no default for it; remove `optional: true`")));
  spec = Offset();
  spec.inputs.push_back({"bias", DataType::kFp32, {-1, 4}});
  EXPECT_THAT(LoadError(spec).message, HasSubstr("the graph has no input 'bias'"));
  spec = Offset();
  spec.inputs[0].dims = {-1, 5};
  EXPECT_THAT(LoadError(spec).message,
              HasSubstr("input 'offset' is FP32 [-1,4] in the graph, not FP32 "));
  spec = Offset();
  spec.inputs.erase(spec.inputs.begin() + 1);
  EXPECT_THAT(LoadError(spec).message, HasSubstr("its input 'x' is not stated"));
}

}  // namespace
}  // namespace tactus
