#include "core/tensor.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(DataType, NamesAreThoseOfTheProtocolAndParseBack) {
  for (int i = 0; i <= static_cast<int>(DataType::kBf16); ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(ParseDataType(Name(type)), type) << Name(type);
  }
  EXPECT_EQ(Name(DataType::kFp32), "FP32");
  EXPECT_EQ(ElementSize(DataType::kBf16), 2u);
  EXPECT_EQ(ElementSize(DataType::kBytes), 0u);
  EXPECT_EQ(ParseDataType("fp32"), std::nullopt);
}

// A client chooses these numbers: no product of them may wrap around into a small one.
TEST(ElementCount, RefusesNegativeDimensionsAndOverflow) {
  using S = Shape;
  EXPECT_EQ(ElementCount(S{}), 1);
  EXPECT_EQ(ElementCount(S{2, 3, 4}), 24);
  EXPECT_EQ(ElementCount(S{2, 0, 4}), 0);
  EXPECT_EQ(ElementCount(S{2, -1}), std::nullopt);
  EXPECT_EQ(ElementCount(S{std::int64_t{1} << 32, std::int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(ElementCount(S{0, std::int64_t{1} << 62, 8}), std::nullopt);
  EXPECT_EQ(ToString(S{1, 28, 28}), "[1,28,28]");
}

TEST(FitsDims, TakesDimsOfWhichSomeAreOpen) {
  EXPECT_TRUE(FitsDims(Shape{3, 4}, Shape{-1, 4}));
  EXPECT_FALSE(FitsDims(Shape{3, 5}, Shape{-1, 4}));
  EXPECT_FALSE(FitsDims(Shape{3}, Shape{-1, 4}));
}

}  // namespace
}  // namespace tactus
