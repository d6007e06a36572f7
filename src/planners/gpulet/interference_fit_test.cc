// Least squares against coefficients that made the samples.
#include "planners/gpulet/interference_fit.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

InterferenceSample Random(Rng& rng, const InterferenceModel& truth, bool uses_dram) {
  InterferenceSample sample;
  for (Throughput* use : {&sample.own, &sample.other}) {
    (*use)[static_cast<std::size_t>(Resource::kL2)] = rng.Uniform();
    if (uses_dram) (*use)[static_cast<std::size_t>(Resource::kDram)] = rng.Uniform();
  }
  sample.factor = truth.Slowdown(sample.own, sample.other);
  return sample;
}

TEST(InterferenceFit, FindsTheCoefficientsThatMadeTheSamples) {
  const InterferenceModel truth{.c = {0.1, 0.7, 0.3, 0.1, 1.05}};
  Rng rng = Rng::Stream(1, "fit");
  std::vector<InterferenceSample> samples;
  for (int i = 0; i < 40; ++i) samples.push_back(Random(rng, truth, true));
  const auto fitted = FitInterference(samples);
  ASSERT_TRUE(fitted);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(fitted->c[i], truth.c[i], 1e-9) << i;
  EXPECT_LT(RelativeErrors(*fitted, samples).back(), 1e-9);
}

TEST(InterferenceFit, AResourceThatNobodyUsesHasNoCoefficient) {
  const InterferenceModel truth{.c = {0.1, 0.7, 0.3, 0.1, 1.05}};
  Rng rng = Rng::Stream(2, "fit");
  std::vector<InterferenceSample> samples;
  for (int i = 0; i < 40; ++i) samples.push_back(Random(rng, truth, false));
  const auto fitted = FitInterference(samples);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->c[2], 0);
  EXPECT_EQ(fitted->c[3], 0);
  EXPECT_NEAR(fitted->c[1], 0.7, 1e-9);
  EXPECT_FALSE(FitInterference(std::span(samples).first(4)));
}

TEST(InterferenceFit, HoldsOutAPartAndLosesNothing) {
  std::vector<InterferenceSample> samples(10);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].factor = 1.0 + static_cast<double>(i);
  const SplitSamples split = Split(samples, 0.3, 7);
  EXPECT_EQ(split.held_out.size(), 3u);
  double sum = 0;
  for (const auto* part : {&split.fitted, &split.held_out}) {
    for (const InterferenceSample& sample : *part) sum += sample.factor;
  }
  EXPECT_EQ(sum, 55);
  EXPECT_EQ(Split(std::span(samples).first(2), 0.01, 1).held_out.size(), 1u);
}

TEST(InterferenceFit, QuantilesAreValuesThatOccur) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(QuantileOf(values, 0.9), 9);
  EXPECT_EQ(QuantileOf(values, 0.91), 10);
  EXPECT_EQ(QuantileOf(values, 0), 1);
  EXPECT_EQ(QuantileOf({}, 0.5), 0);
}

}  // namespace
}  // namespace tactus
