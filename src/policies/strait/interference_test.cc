// Without these the model could learn the wrong way, be ruined by one absurd report, or fail to
// follow a device that changes.
#include "policies/strait/interference.h"

#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

Exposure Beside(double share, int level = 0) {
  return {.neighbours = {share, share, share, share, share},
          .own = {0.5, 0.5, 0.5, 0.5, 0.5},
          .level = level};
}

TEST(Interference, ABatchAloneIsNotSlowed) {
  const Interference model({});
  EXPECT_EQ(model.Degree(Beside(0)), 1);
  EXPECT_GT(model.Degree(Beside(1)), 1);
  EXPECT_GT(model.Degree(Beside(2)), model.Degree(Beside(1)));
}

// One step against the gradient: the analytic derivative must have the sign and, by finite
// differences, the size of the loss's. Adam's first step is rate * sign(gradient).
TEST(Interference, ItsFirstStepGoesDownTheLoss) {
  for (const double actual : {0.6, 1.1, 3.0}) {
    Interference model({});
    const Exposure exposure = Beside(1.3);
    const Interference::Parameters before = model.parameters();
    const double off = std::abs(model.Degree(exposure) - actual);
    ASSERT_TRUE(model.Learn(exposure, actual));
    const double rising = actual > 1.3 ? 1 : -1;  // every parameter raises the degree here
    for (std::size_t i = 0; i < Interference::kParameters; ++i) {
      const bool other_level = i > Interference::kPriority;
      EXPECT_NEAR(model.parameters()[i] - before[i], other_level ? 0 : rising * 0.0075, 1e-6)
          << "parameter " << i << ", actual " << actual;
    }
    EXPECT_LT(std::abs(model.Degree(exposure) - actual), off);
  }
}

// A model that comes with another priority moves the levels of the rest.
TEST(Interference, WhatWasLearntOfAPriorityStaysWithIt) {
  constexpr std::size_t kAt = Interference::kPriority;
  Interference model({});
  for (int i = 0; i < 20; ++i) model.Learn(Beside(1.3, 1), 3);  // of priority 7, the second level
  const double learnt = model.parameters()[kAt + 1];
  ASSERT_GT(learnt, 1.05);
  const double shared = model.parameters()[Interference::kScale];
  model.Relevel(std::array{2, 7}, std::array{2, 7});
  EXPECT_EQ(model.parameters()[kAt + 1], learnt);
  model.Relevel(std::array{2, 7}, std::array{2, 5, 7});
  EXPECT_EQ(model.parameters()[kAt + 1], 1) << "of 5 nothing is known";
  EXPECT_EQ(model.parameters()[kAt + 2], learnt);
  model.Relevel(std::array{2, 5, 7}, std::array{7});
  EXPECT_EQ(model.parameters()[kAt], learnt);
  EXPECT_EQ(model.parameters()[kAt + 2], 1);
  EXPECT_EQ(model.parameters()[Interference::kScale], shared);
}

// A world of another form, with luck: proportional slowdown beyond one device's worth.
double SlowdownThere(const Exposure& e, double strength) {
  return 1 + strength * std::max(0.0, e.neighbours[0] + e.own[0] - 1) * (e.level == 0 ? 0.5 : 1);
}
double MeanError(Interference& model, Rng& rng, int batches, double strength) {
  double sum = 0;
  for (int i = 0; i < batches; ++i) {
    Exposure e = Beside(2.5 * rng.Uniform(), static_cast<int>(rng.Below(2)));
    const double actual = SlowdownThere(e, strength);
    sum += std::abs(model.Degree(e) - actual) / actual;
    model.Learn(e, actual);
  }
  return sum / batches;
}

TEST(Interference, LearnsAWorldAndFollowsItWhenItChanges) {
  Rng rng = Rng::Stream(1, "interference test");
  Interference model({});
  const double at_first = MeanError(model, rng, 100, 1);
  MeanError(model, rng, 3000, 1);
  EXPECT_LT(MeanError(model, rng, 1000, 1), 0.08);
  EXPECT_LT(MeanError(model, rng, 1000, 1), 0.6 * at_first);
  Interference frozen({.learn = false});
  MeanError(model, rng, 3000, 2.5);
  const double followed = MeanError(model, rng, 1000, 2.5);
  EXPECT_LT(followed, 0.12);
  EXPECT_LT(followed, 0.5 * MeanError(frozen, rng, 1000, 2.5));
}

TEST(Interference, GivesEachLevelItsOwnCoefficient) {
  Rng rng = Rng::Stream(2, "interference test");
  Interference model({});
  MeanError(model, rng, 5000, 2);
  EXPECT_LT(model.parameters()[Interference::kPriority],
            0.8 * model.parameters()[Interference::kPriority + 1]);
  EXPECT_EQ(model.parameters()[Interference::kPriority + 2], 1) << "nobody has that level";
  EXPECT_EQ(model.Degree(Beside(2, 99)), model.Degree(Beside(2, kStraitLevels - 1)));
}

TEST(Interference, RefusesWhatMakesNoSense) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Interference model({});
  const Interference::Parameters before = model.parameters();
  for (const double absurd : {0.0, -1.0, 0.05, 1e9, kInfinite, std::nan("")}) {
    EXPECT_FALSE(model.Learn(Beside(1), absurd)) << absurd;
  }
  EXPECT_FALSE(model.Learn(Beside(kInfinite), 2));
  EXPECT_EQ(model.parameters(), before);
  EXPECT_EQ(model.refused(), 7);
}

// Whatever it is told, it stays finite and in range, and can still learn afterwards.
TEST(Interference, SurvivesAnythingItIsTold) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng = Rng::Stream(seed, "interference abuse");
    Interference model({});
    for (int i = 0; i < 2000; ++i) {
      const Exposure e = Beside(std::exp(6 * rng.Uniform() - 3), static_cast<int>(rng.Below(3)));
      model.Learn(e, std::exp(10 * rng.Uniform() - 5));
      const double degree = model.Degree(e);
      ASSERT_TRUE(degree >= 1 && degree <= 100) << "seed " << seed;
    }
    for (const double p : model.parameters()) ASSERT_TRUE(std::isfinite(p)) << "seed " << seed;
    MeanError(model, rng, 6000, 1);
    EXPECT_LT(MeanError(model, rng, 500, 1), 0.25) << "seed " << seed;
  }
}

// What is kept and restored goes on as if nothing had been: Adam's moments and the number of its
// steps belong to it.
TEST(Interference, GoesOnAfterARestoreToTheLastBit) {
  for (const int before : {0, 1, 300, 20'000}) {
    SCOPED_TRACE(before);
    Rng rng = Rng::Stream(5, "restore");
    Interference model({});
    if (before > 0) MeanError(model, rng, before, 1.5);
    Interference restored({});
    const auto done = restored.Restore(model.Save());
    ASSERT_TRUE(done) << done.error().message;
    Rng same = rng;
    MeanError(model, rng, 50, 2);
    MeanError(restored, same, 50, 2);
    EXPECT_EQ(restored.Save(), model.Save());
  }
}

TEST(Interference, RefusesToRestoreWhatIsNotItsOwn) {
  Interference model({});
  Rng rng = Rng::Stream(6, "restore");
  MeanError(model, rng, 100, 1.5);
  const LearnedState good = model.Save();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [&](auto&& change) {
    LearnedState bad = good;
    change(bad);
    const auto done = model.Restore(bad);
    EXPECT_EQ(model.Save(), good) << "it changed all the same";
    return done ? std::string("it was restored") : done.error().message;
  };
  EXPECT_EQ(refused([](LearnedState& s) { s.parameters.pop_back(); }),
            "parameter 'priority 8' is missing");
  EXPECT_EQ(refused([](LearnedState& s) { s.parameters[1].name = "basis"; }),
            "parameter 'basis': not known here");
  EXPECT_EQ(refused([](LearnedState& s) { s.parameters[1] = s.parameters[0]; }),
            "parameter 'scale': stands there twice");
  EXPECT_EQ(refused([](LearnedState& s) { s.parameters[1].value = 0.5; }),
            "parameter 'base': value is 0.5, must be from 1.1 to 10");
  EXPECT_EQ(refused([&](LearnedState& s) { s.parameters[3].value = nan; }),
            "parameter 'neighbours l1': value is nan, must be from 0 to 1");
  EXPECT_EQ(refused([&](LearnedState& s) { s.parameters[8].mean = nan; }),
            "parameter 'own tensor': mean must be a number, and square one from 0 on");
  EXPECT_EQ(refused([](LearnedState& s) { s.steps = -1; }), "steps must be from 0 on");
}

}  // namespace
}  // namespace tactus
