#include "profiling/sample_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

Shape ShapeOf(const ModelSpec& spec) {
  const auto row = SampleRow::Make(spec, 1);
  EXPECT_TRUE(row) << row.error().message;
  if (!row) return {};
  const auto shape = row->inputs().inputs[0].shape;
  return {shape.begin(), shape.end()};
}

// Whatever is stated has as many dimensions as whoever states it says: [-1] is no limit here.
TEST(SampleRow, OfAnyShapeHasTheOneThatIsStatedOrFound) {
  ModelSpec spec{.name = "m"};
  spec.inputs = {{.name = "x", .type = DataType::kFp32, .dims = {-1}, .any_shape = true}};
  EXPECT_EQ(ShapeOf(spec), Shape{1});
  spec.found_shapes = {{"x", {2, 1, 3}}};
  EXPECT_EQ(ShapeOf(spec), (Shape{2, 1, 3}));
  spec.found_shapes = {{"x", {}}};
  EXPECT_EQ(ShapeOf(spec), Shape{});
  spec.parameters["profile_shape.x"] = "4, 5";
  EXPECT_EQ(ShapeOf(spec), (Shape{4, 5}));
  spec.parameters["profile_shape.x"] = "4,";
  EXPECT_FALSE(SampleRow::Make(spec, 1));
  spec.parameters.clear();
  spec.sample = {{.input = "x", .dims = {2, 2}, .file = {}}};
  EXPECT_EQ(ShapeOf(spec), (Shape{2, 2}));
}

}  // namespace
}  // namespace tactus
