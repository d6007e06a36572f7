// Without these a batch could be slowed by a resource it does not use, or a device could do more
// work than it has capacity for.
#include "sim/devices/contention.h"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

constexpr Throughput Only(Resource r, double share) {
  Throughput use{};
  use[static_cast<std::size_t>(r)] = share;
  return use;
}

std::vector<double> Of(const Contention& contention, const std::vector<Contender>& batches) {
  std::vector<double> slowdown(batches.size());
  Slowdowns(contention, batches, slowdown);
  return slowdown;
}

constexpr Contention kQuiet{.crosstalk = 0};

TEST(Contention, ABatchAloneIsNotSlowed) {
  const Contender greedy{.use = {1, 1, 1, 1, 1}, .luck = 7};
  EXPECT_EQ(Of({.crosstalk = 0.5}, {greedy}), std::vector{1.0});
}

TEST(Contention, NothingIsLostUntilAResourceIsFull) {
  const Contender half{.use = Only(Resource::kDram, 0.5)};
  EXPECT_EQ(Of(kQuiet, {half, half}), (std::vector{1.0, 1.0}));
  const Contender other{.use = Only(Resource::kTensor, 1)};
  EXPECT_EQ(Of(kQuiet, {half, half, other}), (std::vector{1.0, 1.0, 1.0}));
}

TEST(Contention, WhoNeedsAFullResourceSlowsInProportion) {
  const Contender most{.use = Only(Resource::kDram, 0.9)};
  const Contender some{.use = Only(Resource::kDram, 0.6)};
  const auto slowdown = Of(kQuiet, {most, some});
  EXPECT_DOUBLE_EQ(slowdown[0], 1.5);
  EXPECT_DOUBLE_EQ(slowdown[1], 1.5);
}

// It spends a third of its time on the memory and two thirds on the tensor cores.
TEST(Contention, ALossCountsByTheTimeSpentOnTheResource) {
  Contender mixed{.use = Only(Resource::kDram, 0.4)};
  mixed.use[static_cast<std::size_t>(Resource::kTensor)] = 0.8;
  const Contender memory{.use = Only(Resource::kDram, 0.8)};
  const auto slowdown = Of(kQuiet, {mixed, memory});
  EXPECT_NEAR(slowdown[0], 1 + 0.2 / 3, 1e-12);
  EXPECT_NEAR(slowdown[1], 1.2, 1e-12);
}

TEST(Contention, APriorityWithMoreWeightLosesLess) {
  Contender high{.use = Only(Resource::kFma, 0.8), .weight = 2};
  const Contender low{.use = Only(Resource::kFma, 0.8)};
  const auto mild = Of(kQuiet, {high, low});
  EXPECT_NEAR(mild[0], 1.2, 1e-12);
  EXPECT_NEAR(mild[1], 2.4, 1e-12);
  // Now the high one gets all it asks for, and the low one the 0.2 that is left.
  high.weight = 5;
  const auto strong = Of(kQuiet, {high, low});
  EXPECT_NEAR(strong[0], 1, 1e-12);
  EXPECT_NEAR(strong[1], 4, 1e-12);
}

// Whatever the weights: nobody waits for ever, and those of one weight share as others do.
TEST(Contention, WeightsThatAreFarApartStopNobodyForGood) {
  const Contender high{.use = {1, 1, 1, 1, 1}};
  const Contender low{.use = {1, 1, 0, 1, 1}, .weight = 1e-200, .luck = 1e9};
  const auto slowdown = Of(kQuiet, {high, low});
  EXPECT_EQ(slowdown[0], 1);
  EXPECT_EQ(slowdown[1], kMostSlowdown);
  const Contender last{.use = {1, 1, 1, 1, 1}, .weight = 1e-200};
  for (const double both : Of(kQuiet, {last, last})) EXPECT_DOUBLE_EQ(both, 2);
}

// Alone it has 0.9 of a resource whose capacity is 0.5: who hardly uses that resource takes nothing
// from it and loses nothing to it; two who do use it share what one can have.
TEST(Contention, WhoUsesMoreThanTheCapacityAloneIsNoShortageByItself) {
  const Contention scarce{.capacity = {0.5, 0.5, 0.5, 0.5, 0.5}, .crosstalk = 0};
  const Contender heavy{.use = Only(Resource::kDram, 0.9)};
  const Contender other{.use = Only(Resource::kTensor, 0.4)};
  EXPECT_EQ(Of(scarce, {heavy, other}), (std::vector{1.0, 1.0}));
  const auto hardly = Of(scarce, {heavy, {.use = Only(Resource::kDram, 1e-6)}});
  EXPECT_NEAR(hardly[0], 1, 2e-6);
  EXPECT_NEAR(hardly[1], 1, 2e-6);
  const auto both = Of(scarce, {heavy, heavy});
  EXPECT_DOUBLE_EQ(both[0], 2);
  EXPECT_DOUBLE_EQ(both[1], 2);
  // A part of what it loses grows with its own use of the resource, not with its neighbour's alone.
  Contender mixed = other;
  double before = 1;
  for (const double share : {0.01, 0.1, 0.3, 0.6}) {
    mixed.use[static_cast<std::size_t>(Resource::kDram)] = share;
    const double slowdown = Of(scarce, {heavy, mixed})[1];
    EXPECT_NEAR(slowdown, 1 + share / (share + 0.4) * (share / 0.9), 1e-12);
    EXPECT_GT(slowdown, before);
    before = slowdown;
  }
}

TEST(Contention, LuckStretchesOnlyWhatIsLost) {
  const Contender in_tail{.use = Only(Resource::kL2, 0.75), .luck = 3};
  const Contender usual{.use = Only(Resource::kL2, 0.75)};
  const auto slowdown = Of(kQuiet, {in_tail, usual});
  EXPECT_DOUBLE_EQ(slowdown[0], 1 + 3 * 0.5);
  EXPECT_DOUBLE_EQ(slowdown[1], 1.5);
}

TEST(Contention, WhatIsHandedOutIsTheCapacityWhateverTheWeights) {
  Rng rng = Rng::Stream(1, "contention test");
  for (int round = 0; round < 1000; ++round) {
    std::vector<Contender> batches(2 + rng.Below(7));
    double asked = 0;
    for (Contender& batch : batches) {
      batch.use = Only(Resource::kL1, 0.05 + 0.95 * rng.Uniform());
      batch.weight = std::pow(1.5, -static_cast<double>(rng.Below(4)));
      asked += batch.use[0];
    }
    const auto slowdown = Of(kQuiet, batches);
    double handed = 0;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      EXPECT_GE(slowdown[i], 1);
      handed += batches[i].use[0] / slowdown[i];
    }
    EXPECT_NEAR(handed, std::min(1.0, asked), 1e-9) << "round " << round << " of seed 1";
  }
}

// What is fitted to pairs must hold on the device that runs plans: luck is even on average.
TEST(Contention, LuckIsOneOnAverage) {
  constexpr int kDraws = 100'000;
  Rng rng = Rng::Stream(3, "test");
  double sum = 0;
  double in_tail = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double luck = DrawLuck(0.55, rng);
    sum += luck;
    in_tail += luck > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 1, 0.01);
  EXPECT_NEAR(in_tail / kDraws, 0.0624, 0.005) << "of a normal variable above 1.535";
  EXPECT_EQ(DrawLuck(0, rng), 1);
}

}  // namespace
}  // namespace tactus
