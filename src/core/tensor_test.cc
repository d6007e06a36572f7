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

// An engine hands the same bytes to its model under the other dims: a product that differed would
// have it read beyond them.
TEST(SameElements, ComparesWhatStandsBetweenOpenDimensions) {
  using S = Shape;
  EXPECT_TRUE(SameElements(S{2, 6}, S{3, 2, 2}));
  EXPECT_TRUE(SameElements(S{1}, S{}));
  EXPECT_TRUE(SameElements(S{-1, 1}, S{-1}));
  EXPECT_TRUE(SameElements(S{2, 4, -1, 6}, S{8, -1, 1, 6}));
  EXPECT_TRUE(SameElements(S{-1, -1}, S{-1, 1, -1}));
  EXPECT_FALSE(SameElements(S{2, 6}, S{3, 5}));
  EXPECT_FALSE(SameElements(S{2}, S{}));
  EXPECT_FALSE(SameElements(S{-1, 6}, S{6, -1})) << "the sizes are on other sides of it";
  EXPECT_FALSE(SameElements(S{-1}, S{-1, -1}));
  EXPECT_FALSE(SameElements(S{-1}, S{4}));
  const S huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_FALSE(SameElements(huge, huge));
}

TEST(Reshaped, OpenDimensionsKeepTheirOrderAndTheirSizes) {
  using S = Shape;
  EXPECT_EQ(Reshaped(S{3, 1}, S{-1, 1}, S{-1}), (S{3}));
  EXPECT_EQ(Reshaped(S{3}, S{-1}, S{-1, 1}), (S{3, 1}));
  EXPECT_EQ(Reshaped(S{1}, S{1}, S{}), (S{}));
  EXPECT_EQ(Reshaped(S{}, S{}, S{1}), (S{1}));
  EXPECT_EQ(Reshaped(S{5, 2, 4, 7, 6}, S{-1, 2, 4, -1, 6}, S{-1, 8, -1, 2, 3}), (S{5, 8, 7, 2, 3}));
  EXPECT_EQ(Reshaped(S{5, 0}, S{-1, -1}, S{-1, 1, -1}), (S{5, 1, 0})) << "of no elements";
  EXPECT_EQ(Reshaped(S{-1, 9}, S{-1, -1}, S{-1, 1, -1}), (S{-1, 1, 9})) << "one stays open";
}

}  // namespace
}  // namespace tactus
