#include "base/rng.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr int kDraws = 200'000;

struct Moments {
  double mean = 0;
  double variance = 0;
};

template <class Draw>
Moments MomentsOf(Draw draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

// A stream must be the same on every machine and in every release: these values are the contract.
TEST(Rng, AStreamIsAFunctionOfSeedAndName) {
  Rng a = Rng::Stream(1, "arrivals/resnet50");
  Rng b = Rng::Stream(1, "arrivals/resnet50");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a.Next(), b.Next());
}

// figures/draws.py draws the same: tests/commands/figures_test.py has the same values.
TEST(Rng, AStreamsNumbersStay) {
  Rng rng = Rng::Stream(7, "a contract");
  EXPECT_EQ(rng.Next(), 15242218863492673840u);
  EXPECT_EQ(rng.Below(1000), 160u);
  EXPECT_DOUBLE_EQ(rng.Exponential(0.5), 0.1851483601030673);
}

TEST(Rng, OtherNamesAndSeedsGiveOtherStreams) {
  Rng a = Rng::Stream(1, "arrivals/a");
  Rng b = Rng::Stream(1, "arrivals/b");
  Rng c = Rng::Stream(2, "arrivals/a");
  const std::uint64_t first = a.Next();
  EXPECT_NE(first, b.Next());
  EXPECT_NE(first, c.Next());
}

TEST(Rng, UniformFillsTheUnitInterval) {
  Rng rng = Rng::Stream(kSeed, "uniform");
  const Moments m = MomentsOf([&] {
    const double x = rng.Uniform();
    EXPECT_GE(x, 0);
    EXPECT_LT(x, 1);
    return x;
  });
  EXPECT_NEAR(m.mean, 0.5, 0.005);
  EXPECT_NEAR(m.variance, 1.0 / 12, 0.002);
}

TEST(Rng, BelowIsUnbiasedAndInRange) {
  Rng rng = Rng::Stream(kSeed, "below");
  int counts[6] = {};
  for (int i = 0; i < 60'000; ++i) ++counts[rng.Below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
}

TEST(Rng, ExponentialHasMeanAndDeviationOneOverRate) {
  Rng rng = Rng::Stream(kSeed, "exponential");
  const Moments m = MomentsOf([&] { return rng.Exponential(4); });
  EXPECT_NEAR(m.mean, 0.25, 0.003);
  EXPECT_NEAR(std::sqrt(m.variance), 0.25, 0.005);
}

TEST(Rng, NormalIsStandard) {
  Rng rng = Rng::Stream(kSeed, "normal");
  const Moments m = MomentsOf([&] { return rng.Normal(); });
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.variance, 1, 0.02);
}

TEST(Rng, GammaHasItsMomentsAboveAndBelowShapeOne) {
  Rng rng = Rng::Stream(kSeed, "gamma");
  for (const double shape : {0.25, 1.0, 4.0}) {
    const Moments m = MomentsOf([&] { return rng.Gamma(shape, 2.0); });
    EXPECT_NEAR(m.mean / (shape * 2), 1, 0.02) << "shape " << shape;
    EXPECT_NEAR(m.variance / (shape * 4), 1, 0.05) << "shape " << shape;
  }
}

}  // namespace
}  // namespace tactus
