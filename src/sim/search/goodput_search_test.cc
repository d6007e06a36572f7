#include "sim/search/goodput_search.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;

// Two models: the first has violations above 700 r/s in all, the second above `knee`.
BadRatios Knee(double knee) {
  return [knee](double rate) -> Expected<std::vector<double>> {
    return std::vector{rate > 700 ? 0.5 : 0.001, rate > knee ? 0.02 : 0.0};
  };
}

// A peak that is off by more than the precision would make every figure of the evaluation wrong.
TEST(GoodputSearch, FindsTheKneeFromBelowAndFromAbove) {
  for (const double start : {1.0, 123.0, 300.0, 600.0, 50'000.0}) {
    const auto peak = FindPeak(Knee(300), {.start_rps = start, .precision = 0.001});
    ASSERT_TRUE(peak) << peak.error().message;
    EXPECT_LE(peak->rate_rps, 300) << start;
    EXPECT_GT(peak->failed_rps, 300) << start;
    EXPECT_LE(peak->failed_rps - peak->rate_rps, 0.001 * peak->rate_rps) << start;
    EXPECT_EQ(peak->limiting_model, 1u);
  }
}

TEST(GoodputSearch, EveryModelCounts) {
  const auto peak = FindPeak(Knee(5000), {.start_rps = 100, .precision = 0.01});
  ASSERT_TRUE(peak);
  EXPECT_NEAR(peak->rate_rps, 700, 7);
  EXPECT_EQ(peak->limiting_model, 0u);
}

// A planner that has no plan for a load says no more than that the load is too much: the search
// must go on below it.
TEST(GoodputSearch, TakesARefusedLoadForOneThatDoesNotPass) {
  const auto planned_to = [](double most, ErrorCode code) -> BadRatios {
    return [=](double rate) -> Expected<std::vector<double>> {
      if (rate > most) return Fail(code, "no plan");
      return Knee(300)(rate);
    };
  };
  const auto peak = FindPeak(planned_to(200, ErrorCode::kResourceExhausted),
                             {.start_rps = 5000, .precision = 0.01});
  ASSERT_TRUE(peak) << peak.error().message;
  EXPECT_NEAR(peak->rate_rps, 200, 2);
  EXPECT_EQ(peak->refused, "no plan");
  EXPECT_EQ(peak->probes.front().refused, "no plan");
  EXPECT_FALSE(peak->probes.front().judged);
  // Beyond the knee there are plans: what held the peak down is a model.
  const auto judged = FindPeak(planned_to(400, ErrorCode::kResourceExhausted),
                               {.start_rps = 5000, .precision = 0.01});
  ASSERT_TRUE(judged);
  EXPECT_NEAR(judged->rate_rps, 300, 3);
  EXPECT_EQ(judged->refused, "");
  EXPECT_EQ(judged->limiting_model, 1u);
  EXPECT_FALSE(FindPeak(planned_to(200, ErrorCode::kInvalidArgument), {.start_rps = 5000}));
}

TEST(GoodputSearch, TakesFewProbes) {
  const auto peak = FindPeak(Knee(300), {.start_rps = 400, .precision = 0.005});
  ASSERT_TRUE(peak);
  EXPECT_LE(peak->probes.size(), 11u);
  EXPECT_EQ(peak->probes.front().rate_rps, 400);
  for (const GoodputProbe& probe : peak->probes) EXPECT_EQ(probe.passed, probe.rate_rps <= 300);
}

// A good guess is worth few probes, a bad one must still end.
TEST(GoodputSearch, SmallFirstStepsSaveProbes) {
  const auto near = FindPeak(Knee(300), {.start_rps = 295, .precision = 0.02, .first_step = 1.08});
  ASSERT_TRUE(near);
  EXPECT_LE(near->probes.size(), 4u);
  EXPECT_NEAR(near->rate_rps, 300, 6);
  for (const double start : {1.0, 90'000.0}) {
    const auto far =
        FindPeak(Knee(300), {.start_rps = start, .precision = 0.02, .first_step = 1.08});
    ASSERT_TRUE(far);
    EXPECT_NEAR(far->rate_rps, 300, 6) << start;
  }
}

// A ratio of exactly the limit still passes.
TEST(GoodputSearch, TheLimitItselfPasses) {
  const BadRatios step = [](double rate) -> Expected<std::vector<double>> {
    return std::vector{rate <= 100 ? 0.01 : 0.010001};
  };
  const auto peak = FindPeak(step, {.start_rps = 100, .bad_limit = 0.01});
  ASSERT_TRUE(peak);
  EXPECT_GE(peak->rate_rps, 100);
}

// It must end where there is no knee.
TEST(GoodputSearch, EndsWhereAllOrNothingPasses) {
  const BadRatios always = [](double) -> Expected<std::vector<double>> { return std::vector{0.0}; };
  const auto high = FindPeak(always, {.start_rps = 1, .most_doublings = 5});
  ASSERT_TRUE(high);
  EXPECT_EQ(high->rate_rps, 32);
  EXPECT_EQ(high->failed_rps, 0);
  const BadRatios never = [](double) -> Expected<std::vector<double>> { return std::vector{1.0}; };
  const auto none = FindPeak(never, {.start_rps = 32, .most_doublings = 5});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->rate_rps, 0);
  EXPECT_EQ(none->failed_rps, 1);
}

// Where the violation ratio does not rise with the rate, what fails must not look worse than it is.
TEST(GoodputSearch, StopsAtTheLeastRateAndKnowsTheBestProbe) {
  const BadRatios dip = [](double rate) -> Expected<std::vector<double>> {
    return std::vector{0.0, rate == 40 ? 0.04 : 0.07};
  };
  const auto none = FindPeak(dip, {.start_rps = 80, .least_rps = 15});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->rate_rps, 0);
  std::vector<double> rates;
  for (const GoodputProbe& probe : none->probes) rates.push_back(probe.rate_rps);
  EXPECT_THAT(rates, ::testing::ElementsAre(80, 40, 20, 15));
  ASSERT_NE(BestProbe(*none), nullptr);
  EXPECT_EQ(BestProbe(*none)->rate_rps, 40);
  EXPECT_EQ(BestProbe(*none)->worst, 0.04);
  EXPECT_EQ(BestProbe(*none)->worst_model, 1u);
  // The least rate may be more than the guess, and pass.
  const auto some = FindPeak(Knee(300), {.start_rps = 1, .precision = 0.01, .least_rps = 250});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->probes.front().rate_rps, 250);
  EXPECT_NEAR(some->rate_rps, 300, 3);
}

TEST(GoodputSearch, AModelWithoutRequestsNeitherPassesNorMissesAll) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const BadRatios silent = [&](double rate) -> Expected<std::vector<double>> {
    return std::vector{rate > 20 ? 0.3 : 0.002, nothing};
  };
  const auto peak = FindPeak(silent, {.start_rps = 40, .most_doublings = 2});
  ASSERT_TRUE(peak);
  EXPECT_EQ(peak->rate_rps, 0);
  ASSERT_EQ(peak->probes.size(), 3u);
  EXPECT_TRUE(peak->probes[0].judged);  // the other model failed: that is known
  EXPECT_EQ(peak->probes[0].worst, 0.3);
  EXPECT_FALSE(peak->probes[1].judged);
  EXPECT_EQ(peak->probes[1].worst_model, 1u);
  EXPECT_EQ(peak->probes[1].worst, 0.002);
  EXPECT_EQ(BestProbe(*peak), &peak->probes[0]);
}

TEST(GoodputSearch, PassesErrorsOnAndRefusesNonsense) {
  const BadRatios broken = [](double) -> Expected<std::vector<double>> {
    return NotFound("no such profile");
  };
  EXPECT_EQ(FindPeak(broken, {}).error().message, "no such profile");
  EXPECT_THAT(FindPeak(Knee(1), {.start_rps = 0}).error().message, HasSubstr("rate above 0"));
  EXPECT_THAT(FindPeak(Knee(1), {.bad_limit = 1}).error().message, HasSubstr("[0, 1)"));
  EXPECT_THAT(FindPeak(Knee(1), {.precision = 0}).error().message, HasSubstr("precision"));
  EXPECT_THAT(FindPeak(Knee(1), {.first_step = 1}).error().message, HasSubstr("first step"));
  const BadRatios nobody = [](double) -> Expected<std::vector<double>> {
    return std::vector<double>{};
  };
  EXPECT_THAT(FindPeak(nobody, {}).error().message, HasSubstr("needs a model"));
}

// By hand: 2, 4, 6 have mean 4 and deviation 2; t(2) = 4.303; 4.303 * 2 / sqrt(3) = 4.969.
TEST(MeanWithConfidence, IsStudents) {
  const double values[] = {2, 4, 6};
  EXPECT_DOUBLE_EQ(MeanWithConfidence(values).mean, 4);
  EXPECT_NEAR(MeanWithConfidence(values).half_width, 4.969, 0.001);
  EXPECT_EQ(MeanWithConfidence({values, 1}).half_width, 0);
  EXPECT_EQ(MeanWithConfidence({}).mean, 0);
}

}  // namespace
}  // namespace tactus
