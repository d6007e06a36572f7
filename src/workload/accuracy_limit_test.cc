#include "workload/accuracy_limit.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/source_path_for_test.h"

namespace tactus {
namespace {

// One model, exits of 1 ms at 50 % and 3 ms at 90 %, on one lane.
double One(double rate) {
  const AccuracyDemand demand{rate, {{0.001, 0.5}, {0.003, 0.9}}};
  return AccuracyLimit({&demand, 1}, 1);
}

TEST(AccuracyLimit, IsTheDeepestExitWhileThereIsTime) {
  EXPECT_DOUBLE_EQ(One(10), 0.9);
  EXPECT_NEAR(One(1000.0 / 3), 0.9, 1e-12);
}

// At 500 requests a second the first exit takes half of the second; the other half upgrades 250.
TEST(AccuracyLimit, MixesExitsWhenTimeIsShort) { EXPECT_NEAR(One(500), 0.7, 1e-12); }

TEST(AccuracyLimit, IsTheQuickestExitWhenNothingIsLeft) {
  EXPECT_NEAR(One(1000), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(One(5000), 0.5);
}

TEST(AccuracyLimit, IsZeroWithoutDemand) {
  EXPECT_DOUBLE_EQ(AccuracyLimit({}, 1), 0);
  EXPECT_DOUBLE_EQ(One(0), 0);
}

TEST(AccuracyLimit, TwoLanesCarryTwiceTheLoad) {
  const AccuracyDemand demand{1000, {{0.001, 0.5}, {0.003, 0.9}}};
  EXPECT_DOUBLE_EQ(AccuracyLimit({&demand, 1}, 2), One(500));
}

// Of 100 requests a second half cost 9 ms at their only exit, the others 1 ms at one that is worth
// 0.1 and 6 ms at one that is worth 0.8: 50 + 450 ms leave half of a second, in which all go deep.
// At 200 a second all of it is needed for the shallow exits; what one of the dear ones is given up
// for, 9 ms, takes 1.8 others deep, which is worth 1.26, more than its own 0.7.
TEST(ValueLimit, GivesUpTheDearForTheCheap) {
  const auto limit = [](double rate, double most_lost) {
    const std::vector<AccuracyDemand> demands = {{rate / 2, {{0.009, 0.7}}},
                                                 {rate / 2, {{0.001, 0.1}, {0.006, 0.8}}}};
    return ValueLimit(demands, 1, most_lost);
  };
  EXPECT_NEAR(limit(100, 0), 0.75, 1e-9);
  EXPECT_NEAR(limit(100, 0.5), 0.75, 1e-9);
  EXPECT_NEAR(limit(200, 0), 0.4, 1e-9);
  EXPECT_NEAR(limit(200, 0.1), 0.4 + 0.1 * 0.56, 1e-9);
  EXPECT_NEAR(limit(200, 1), 0.4 + 100 / 360.0 * 0.56, 1e-9) << "until all others are deep";
}

// 1.8 seconds of the dear in every second: 28 % of all have to go.
TEST(ValueLimit, IsZeroWhereMoreMustBeLost) {
  const std::vector<AccuracyDemand> demands = {{200, {{0.009, 0.7}}}, {200, {{0.001, 0.1}}}};
  EXPECT_DOUBLE_EQ(ValueLimit(demands, 1, 0.2), 0);
  EXPECT_NEAR(ValueLimit(demands, 1, 0.5), 0.05 + 0.5 * 0.7 * 0.8 / 1.8, 1e-6);
}

TEST(ValueLimit, IsTheAccuracyLimitWhereNobodyMayBeLost) {
  const AccuracyDemand demand{500, {{0.001, 0.5}, {0.003, 0.9}}};
  EXPECT_NEAR(ValueLimit({&demand, 1}, 1, 0), One(500), 1e-9);
}

// A middle exit under the line between its neighbours is never worth its time: a mixture of the two
// gives more. One that is slower and worse than another counts for nothing, wherever it stands.
TEST(AccuracyLimit, IgnoresExitsUnderTheHull) {
  const AccuracyDemand with{500, {{0.001, 0.5}, {0.002, 0.6}, {0.003, 0.9}, {0.004, 0.85}}};
  EXPECT_NEAR(AccuracyLimit({&with, 1}, 1), One(500), 1e-12);
  const AccuracyDemand shuffled{500, {{0.004, 0.85}, {0.003, 0.9}, {0.002, 0.6}, {0.001, 0.5}}};
  EXPECT_NEAR(AccuracyLimit({&shuffled, 1}, 1), One(500), 1e-12);
}

// The second goes where it buys most: 0.4 per ms for the first model before 0.1 per ms for the
// other.
TEST(AccuracyLimit, SpendsOnTheBestPriceFirst) {
  const std::vector<AccuracyDemand> demands = {{100, {{0.001, 0.1}, {0.003, 0.3}}},
                                               {100, {{0.001, 0.1}, {0.002, 0.5}}}};
  EXPECT_NEAR(AccuracyLimit(demands, 0.2), 0.1, 1e-12);
  EXPECT_NEAR(AccuracyLimit(demands, 0.3), 0.3, 1e-12);
  EXPECT_NEAR(AccuracyLimit(demands, 0.4), 0.35, 1e-12);
  EXPECT_NEAR(AccuracyLimit(demands, 0.5), 0.4, 1e-12);
}

// The published figures for the stand-in profile of EdgeServing's experiment, rates 3 : 2 : 1.
TEST(AccuracyLimit, MatchesAnIndependentCalculationForTheThreeResNets) {
  const std::string root = kSourceDir;
  auto scenario = LoadScenario(root + "/scenarios/three-resnets.toml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const auto profile = LoadProfile(scenario->profile);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  const struct {
    double rate_of_resnet152;
    double percent;
  } cases[] = {{20, 76.2},  {100, 76.2}, {140, 76.2}, {180, 71.7},
               {220, 63.8}, {240, 59.3}, {280, 52.2}};
  for (const auto& c : cases) {
    scenario->rate_rps = 6 * c.rate_of_resnet152;
    const auto limit = AccuracyLimit(*scenario, *profile);
    ASSERT_TRUE(limit.has_value() && limit->has_value());
    EXPECT_NEAR(100 * (*limit)->largest_batch, c.percent, 0.06) << c.rate_of_resnet152;
    EXPECT_LE((*limit)->by_rate, (*limit)->largest_batch + 1e-12) << c.rate_of_resnet152;
  }
}

// One exit of 1 ms and one of 10 ms, in a batch of any size to 4. Of 12 ms the deeper exit leaves 2
// to gather in: 310 requests a second fill no batch there, and batches of 4 at the other.
TEST(AccuracyLimit, LetsBatchesBeAsLargeAsTheRateFills) {
  Scenario scenario;
  scenario.models = {{.name = "m", .profile_as = "m", .slo_ms = 12}};
  ProfileFile profile;
  profile.models = {{.name = "m", .max_batch = 4, .exits = {}}};
  for (const auto& [accuracy, mean] : {std::pair(0.5, 1.0), std::pair(0.9, 10.0)}) {
    ProfiledExit exit{.name = accuracy < 0.6 ? "1" : "2", .accuracy = accuracy};
    for (int b = 1; b <= 4; ++b) exit.cells.push_back({.mean_ms = mean});
    profile.models[0].exits.push_back(exit);
  }
  const auto at = [&](double rate) {
    scenario.rate_rps = rate;
    const auto limit = AccuracyLimit(scenario, profile);
    return limit.has_value() && limit->has_value() ? **limit : AccuracyLimits{};
  };
  EXPECT_EQ(at(10), (AccuracyLimits{0.9, 0.9})) << "there is time for each alone";
  EXPECT_DOUBLE_EQ(at(2000).by_rate, at(2000).largest_batch);
  EXPECT_NEAR(at(310).largest_batch, 0.9, 1e-12);
  // A quarter of a millisecond for each at the first exit; the rest of the second goes deeper.
  EXPECT_NEAR(at(310).by_rate, 0.5 + 0.4 * (1 / 310.0 - 0.00025) / (0.010 - 0.00025), 1e-9);
}

TEST(AccuracyLimit, SaysNothingWhereNoAccuracyIsKnown) {
  Scenario scenario;
  scenario.models = {{.name = "m", .profile_as = "m"}};
  ProfileFile profile;
  profile.models = {
      {.name = "m", .max_batch = 1, .exits = {{.name = "1", .cells = {{.mean_ms = 1}}}}}};
  const auto limit = AccuracyLimit(scenario, profile);
  ASSERT_TRUE(limit.has_value()) << limit.error().message;
  EXPECT_FALSE(limit->has_value());
}

}  // namespace
}  // namespace tactus
