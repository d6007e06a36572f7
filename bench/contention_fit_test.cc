// Without these a fit could be worse than what it started from, or tell of a tail that nobody saw.
#include "contention_fit.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

std::vector<MeasuredPair> PairsOf(const Contention& physics, double tail, int count) {
  Rng rng = Rng::Stream(7, "contention fit test");
  std::vector<MeasuredPair> pairs;
  for (int i = 0; i < count; ++i) {
    MeasuredPair pair;
    for (Throughput& use : pair.use) {
      for (const Resource r : {Resource::kL2, Resource::kDram, Resource::kFma}) {
        use[static_cast<std::size_t>(r)] = rng.Uniform();
      }
    }
    pair.slowdown = Slowdowns(physics, pair);
    for (std::size_t side = 0; side < 2; ++side) {
      pair.slowdown_95[side] = 1 + (pair.slowdown[side] - 1) * std::exp(1.6449 * tail);
    }
    pairs.push_back(pair);
  }
  return pairs;
}

TEST(ContentionFit, FindsThePhysicsThatMadeThePairs) {
  Contention physics{.capacity = {1, 1.4, 0.6, 1, 0.9}, .crosstalk = 0.12};
  const FittedContention fitted = FitContention(PairsOf(physics, 0.3, 100));
  for (std::size_t r = 0; r < kResources; ++r) {
    EXPECT_NEAR(fitted.contention.capacity[r], physics.capacity[r], 0.02) << kResourceNames[r];
  }
  EXPECT_NEAR(fitted.contention.crosstalk, physics.crosstalk, 0.01);
  EXPECT_NEAR(fitted.tail, 0.3, 1e-3);
}

TEST(ContentionFit, WhereNobodySlowsAnybodyNothingIsShort) {
  std::vector<MeasuredPair> pairs = PairsOf({.capacity = {9, 9, 9, 9, 9}, .crosstalk = 0}, 0, 20);
  const FittedContention fitted = FitContention(pairs);
  for (const MeasuredPair& pair : pairs) {
    for (const double slowdown : Slowdowns(fitted.contention, pair)) EXPECT_NEAR(slowdown, 1, 0.01);
  }
  EXPECT_EQ(fitted.tail, 0);
  EXPECT_EQ(FitContention({}).contention.capacity[0], 1);
}

}  // namespace
}  // namespace tactus
