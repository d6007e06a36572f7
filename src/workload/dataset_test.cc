// The labelled images that accuracy is measured with: read exactly, or refused by name.
#include "workload/dataset.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  const TemporaryFolder folder_;
};

std::string Bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int v : values) out.push_back(static_cast<char>(v));
  return out;
}

TEST_F(DatasetTest, ReadsImagesAndLabels) {
  const auto images = Write("images", Bytes({0, 0,   8,   3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3,  //
                                             0, 128, 255, 1, 2, 3}));
  const auto labels = Write("labels", Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7, 9}));
  const auto set = LoadIdx(images, labels);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->count, 2);
  EXPECT_EQ(set->rows, 1);
  EXPECT_EQ(set->columns, 3);
  EXPECT_EQ(set->pixels_per_image(), 3U);
  EXPECT_THAT(set->labels, ::testing::ElementsAre(7, 9));
  const auto values = Normalise(*set);
  ASSERT_EQ(values.size(), 6U);
  // The training script computes (pixel / 255 - 0.2860) / 0.3530.
  EXPECT_FLOAT_EQ(values[0], -0.2860F / 0.3530F);
  EXPECT_FLOAT_EQ(values[1], (128.0F / 255.0F - 0.2860F) / 0.3530F);
  EXPECT_FLOAT_EQ(values[2], (1.0F - 0.2860F) / 0.3530F);
}

TEST_F(DatasetTest, RefusesWhatIsMissingOrBrokenAndNamesIt) {
  const auto labels = Write("labels", Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7, 9}));
  const auto absent = LoadIdx(folder_ / "absent", labels);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(absent.error().message, HasSubstr("absent"));
  EXPECT_THAT(absent.error().message, HasSubstr("dataset-fashion-mnist"));

  struct Case {
    const char* what;
    std::string bytes;
    const char* message;
  };
  const std::array<Case, 5> cases{{
      {"float elements", Bytes({0, 0, 13, 3, 0, 0, 0, 1}), "not an IDX file"},
      {"labels for images", Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7, 9}), "3 dimensions"},
      {"cut header", Bytes({0, 0, 8, 3, 0, 0}), "truncated header"},
      {"cut body", Bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2}), "promises 6"},
      {"absurd size", Bytes({0, 0, 8, 3, 127, 0, 0, 2, 127, 0, 0, 1, 0, 0, 0, 3}), "more than"},
  }};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const auto set = LoadIdx(Write("images", c.bytes), labels);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(set.error().message, HasSubstr(c.message));
  }
}

TEST_F(DatasetTest, RefusesImagesAndLabelsOfDifferentNumber) {
  const auto images = Write("images", Bytes({0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 5}));
  const auto labels = Write("labels", Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7, 9}));
  const auto set = LoadIdx(images, labels);
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("1 images"));
  EXPECT_THAT(set.error().message, HasSubstr("2 labels"));
}

TEST(FashionMnist, HasTenThousandTestImagesOfTenClasses) {
  if (!std::filesystem::exists(kFashionMnistFolder)) {
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  }
  const auto set = LoadFashionMnistTest();
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->count, 10000);
  EXPECT_EQ(set->rows, 28);
  EXPECT_EQ(set->columns, 28);
  std::array<int, 10> classes{};
  for (const auto label : set->labels) {
    ASSERT_LT(label, 10);
    ++classes[label];
  }
  EXPECT_THAT(classes, ::testing::Each(1000));
}

TEST(ArgMax, TakesTheFirstOfTheLargest) {
  const std::array<float, 4> values{-3, 2, 2, 1};
  EXPECT_EQ(ArgMax(std::as_bytes(std::span(values))), 1);
  const std::array<float, 2> negative{-3, -4};
  EXPECT_EQ(ArgMax(std::as_bytes(std::span(negative))), 0);
  EXPECT_EQ(ArgMax({}), -1);
}

}  // namespace
}  // namespace tactus
