// A window that took luck for a slower machine, or an outlier for a drift, would make every policy
// pessimistic for nothing; one that did not see a slower machine would let them be late for ever.
#include "dispatch/ratio_window.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

constexpr RatioWindow::Rule kP95 = RatioWindow::RuleOf(95);

int StepOf(double ratio) { return RatioSteps::Of(FromMillis(ratio), Millis(1)); }

TEST(RatioSteps, AreTheLeastThatIsNotExceeded) {
  EXPECT_EQ(StepOf(1), RatioSteps::kOne);
  EXPECT_EQ(StepOf(1.000001), RatioSteps::kOne + 1);
  EXPECT_EQ(StepOf(0.99), RatioSteps::kOne);
  EXPECT_EQ(StepOf(0.98), RatioSteps::kOne - 1);
  EXPECT_NEAR(RatioSteps::Ratio(StepOf(1.3)), 1.3, 0.026);
  EXPECT_GE(RatioSteps::Ratio(StepOf(1.3)), 1.3);
}

// Whatever a clock or a file says, a ratio is bounded.
TEST(RatioSteps, AreBounded) {
  EXPECT_NEAR(RatioSteps::Ratio(StepOf(1000)), 4, 0.01);
  EXPECT_NEAR(RatioSteps::Ratio(StepOf(0)), 0.5, 0.01);
  EXPECT_EQ(RatioSteps::Of(Millis(-5), Millis(1)), 0);
  EXPECT_EQ(RatioSteps::Of(Millis(5), Millis(0)), RatioSteps::kOne);
  EXPECT_EQ(RatioSteps::Of(Millis(5), Millis(-1)), RatioSteps::kOne);
}

TEST(RatioWindow, SixOutliersAreNone) {
  RatioWindow window(kP95);
  for (int i = 0; i < 6; ++i) window.Push(StepOf(4));
  EXPECT_EQ(window.answer(), RatioSteps::kOne);
  EXPECT_FALSE(window.slower());
}

TEST(RatioWindow, SevenInARowAreASlowerMachine) {
  RatioWindow window(kP95);
  for (int i = 0; i < 7; ++i) window.Push(StepOf(1.3));
  EXPECT_EQ(window.answer(), StepOf(1.3));
  EXPECT_TRUE(window.slower());
}

// One batch in ten that takes twice as long is more than a P95 allows; one in twenty is not.
TEST(RatioWindow, ManyAreASlowerMachineTheyNeedNotFollowOneAnother) {
  for (const int every : {8, 20}) {
    RatioWindow window(kP95);
    for (int i = 1; i <= 256; ++i) window.Push(i % every == 0 ? StepOf(2) : StepOf(0.9));
    EXPECT_EQ(window.slower(), every == 8) << every;
  }
}

TEST(RatioWindow, ComesDownWhenNearlyAllAreQuicker) {
  RatioWindow window(kP95);
  for (int i = 0; i < 128; ++i) window.Push(StepOf(1.3));
  for (int i = 0; i < 121; ++i) window.Push(StepOf(0.7));
  EXPECT_EQ(window.answer(), StepOf(1.3));
  window.Push(StepOf(0.7));
  EXPECT_EQ(window.answer(), StepOf(0.7));
}

// The answer that is kept up to date is that of counting all of the window anew.
TEST(RatioWindow, AgreesWithCounting) {
  for (const double percentile : {0.0, 50.0, 95.0, 99.0}) {
    const auto rule = RatioWindow::RuleOf(percentile);
    Rng rng = Rng::Stream(static_cast<std::uint64_t>(percentile), "window");
    RatioWindow window(rule);
    std::vector<int> all(RatioWindow::kBatches, RatioSteps::kOne);
    for (int i = 0; i < 2000; ++i) {
      all.push_back(static_cast<int>(rng.Below(RatioSteps::kSteps)));
      window.Push(all.back());
      int answer = RatioSteps::kSteps - 1;
      const auto above = [&](int step) {
        return std::count_if(all.end() - RatioWindow::kBatches, all.end(),
                             [step](int each) { return each > step; });
      };
      while (answer > 0 && above(answer - 1) <= rule.exceeding) --answer;
      ASSERT_EQ(window.answer(), answer) << percentile << " after " << i;
    }
  }
}

// Over an hour of a steady machine of any spread nothing is believed that is not so.
TEST(RatioWindow, LuckIsNoDrift) {
  Rng rng = Rng::Stream(3, "luck");
  RatioWindow window(kP95);
  int believed = 0;
  for (int i = 0; i < 100'000; ++i) {
    window.Push(rng.Uniform() < 0.05 ? StepOf(1 + 2 * rng.Uniform())
                                     : StepOf(0.5 + rng.Uniform() / 2));
    believed += window.slower();
  }
  EXPECT_LT(believed, 1000);
}

}  // namespace
}  // namespace tactus
