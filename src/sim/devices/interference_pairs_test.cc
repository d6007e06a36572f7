// A table of pairs, and what is said where one is wrong.
#include "sim/devices/interference_pairs.h"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace tactus {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto pairs = ParseInterferencePairs(text, "pairs.csv");
  return pairs ? "" : pairs.error().message;
}

TEST(InterferencePairs, AreReadByTheNamesOfTheirColumns) {
  const auto pairs = ParseInterferencePairs(
      "# measured\nmodel,beside_dram,slowdown,l2,dram,beside_l2\na,0.4,1.25,0.1,0.2,0.3\n", "x");
  ASSERT_TRUE(pairs) << pairs.error().message;
  ASSERT_EQ(pairs->samples.size(), 1u);
  EXPECT_TRUE(pairs->held_out.empty());
  const InterferenceSample& sample = pairs->samples.front();
  EXPECT_EQ(sample.factor, 1.25);
  EXPECT_EQ(sample.own[static_cast<std::size_t>(Resource::kL2)], 0.1);
  EXPECT_EQ(sample.own[static_cast<std::size_t>(Resource::kDram)], 0.2);
  EXPECT_EQ(sample.other[static_cast<std::size_t>(Resource::kL2)], 0.3);
  EXPECT_EQ(sample.other[static_cast<std::size_t>(Resource::kDram)], 0.4);
}

// Otherwise the fit would be judged by what it, or what the table was made with, has seen.
TEST(InterferencePairs, ATableThatSaysWhatIsHeldOutIsObeyed) {
  const auto pairs = ParseInterferencePairs(
      "slowdown,held_out,l2,dram,beside_l2,beside_dram\n"
      "1,0,0,0,0,0\n2,1,0,0,0,0\n3,0,0,0,0,0\n",
      "x");
  ASSERT_TRUE(pairs) << pairs.error().message;
  const SplitSamples split = SplitAsTold(*pairs);
  ASSERT_EQ(split.fitted.size(), 2u);
  EXPECT_EQ(split.fitted[1].factor, 3);
  ASSERT_EQ(split.held_out.size(), 1u);
  EXPECT_EQ(split.held_out[0].factor, 2);
}

std::pair<double, double> Uses(const InterferenceSample& sample) {
  const auto l2 = static_cast<std::size_t>(Resource::kL2);
  return std::minmax({sample.own[l2], sample.other[l2]});
}

// A side whose other one was fitted is no test of the fit.
TEST(InterferencePairs, TheSidesOfAPairStayTogether) {
  const auto l2 = static_cast<std::size_t>(Resource::kL2);
  std::vector<InterferenceSample> samples;
  for (int a = 0; a < 5; ++a) {
    for (int b = a; b < 5; ++b) {
      InterferenceSample side{.factor = 1.0 + a};
      side.own[l2] = 0.1 * a;
      side.other[l2] = 0.1 * b;
      samples.push_back(side);
      std::swap(side.own, side.other);
      samples.insert(samples.begin(), side);  // far from its own other side
    }
  }
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const SplitSamples split = SplitByPair(samples, 0.4, seed);
    EXPECT_EQ(split.held_out.size(), 12u) << seed;  // 6 of 15 pairs
    EXPECT_EQ(split.fitted.size(), 18u) << seed;
    std::set<std::pair<double, double>> seen;
    for (const InterferenceSample& sample : split.fitted) seen.insert(Uses(sample));
    for (const InterferenceSample& sample : split.held_out) {
      EXPECT_FALSE(seen.contains(Uses(sample))) << seed;
    }
  }
  EXPECT_EQ(SplitByPair(std::span(samples).first(1), 0.4, 1).held_out.size(), 1u);
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
  EXPECT_EQ(ErrorOf("held_out," + header + "1,1,0,0,0,0\nyes,1,0,0,0,0\n"),
            "pairs.csv:3: held_out is 'yes'; it is 0 or 1");
  EXPECT_NE(ErrorOf("").find("has no header"), std::string::npos);
}

}  // namespace
}  // namespace tactus
