// A table of pairs, and what is said where one is wrong.
#include "sim/interference_pairs.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto samples = ParseInterferencePairs(text, "pairs.csv");
  return samples ? "" : samples.error().message;
}

TEST(InterferencePairs, AreReadByTheNamesOfTheirColumns) {
  const auto samples = ParseInterferencePairs(
      "# measured\nmodel,beside_dram,slowdown,l2,dram,beside_l2\na,0.4,1.25,0.1,0.2,0.3\n", "x");
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->size(), 1u);
  const InterferenceSample& sample = samples->front();
  EXPECT_EQ(sample.factor, 1.25);
  EXPECT_EQ(sample.own[static_cast<std::size_t>(Resource::kL2)], 0.1);
  EXPECT_EQ(sample.own[static_cast<std::size_t>(Resource::kDram)], 0.2);
  EXPECT_EQ(sample.other[static_cast<std::size_t>(Resource::kL2)], 0.3);
  EXPECT_EQ(sample.other[static_cast<std::size_t>(Resource::kDram)], 0.4);
}

TEST(InterferencePairs, BadOnesAreNamed) {
  EXPECT_NE(ErrorOf("model,slowdown\na,1\n").find("pairs.csv: has no column 'l2'"),
            std::string::npos);
  const std::string header = "slowdown,l2,dram,beside_l2,beside_dram\n";
  EXPECT_EQ(ErrorOf(header + "1,0,0,0,0\n0,0,0,0,0\n"),
            "pairs.csv:3: slowdown is '0'; a slowdown is a number above 0");
  EXPECT_EQ(ErrorOf(header + "1,0,29.03,0,0\n"),
            "pairs.csv:2: dram is '29.03'; a use is a share of the device, from 0 to 1");
  EXPECT_NE(ErrorOf(header + "1,0,nan,0,0\n").find("dram is 'nan'"), std::string::npos);
  EXPECT_NE(ErrorOf(header + "1,0\n").find("pairs.csv:2: 2 cells where the header has 5"),
            std::string::npos);
  EXPECT_NE(ErrorOf("").find("has no header"), std::string::npos);
}

}  // namespace
}  // namespace tactus
