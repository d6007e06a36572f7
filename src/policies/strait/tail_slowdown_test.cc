// How much more than predicted is to be feared. Without these a few very quick or slow batches
// could decide who may join whom.
#include "policies/strait/tail_slowdown.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

// What neighbours cost is anything from nothing to five times what was predicted.
void Live(TailSlowdown& tail, int batches) {
  Rng rng = Rng::Stream(1, "excess tail");
  for (int i = 0; i < batches; ++i) {
    const double predicted = 1 + rng.Uniform();
    tail.Learn(predicted, 1 + 5 * rng.Uniform() * (predicted - 1));
  }
}

TEST(TailSlowdown, LearnsTheQuantileOfWhatItCostsToWhatWasPredicted) {
  for (const double quantile : {0.5, 0.9, 0.99}) {
    TailSlowdown tail(quantile);
    EXPECT_EQ(tail.factor(), 1);
    Live(tail, 20'000);
    EXPECT_NEAR(tail.factor(), 5 * quantile, 0.5);
    EXPECT_DOUBLE_EQ(tail.Of(1.5), 1 + tail.factor() / 2);
  }
}

TEST(TailSlowdown, WithoutAQuantileThereIsNoTail) {
  TailSlowdown tail(0);
  Live(tail, 1000);
  EXPECT_EQ(tail.factor(), 1);
  EXPECT_EQ(tail.Of(1.1), 1.1);
}

TEST(TailSlowdown, StaysWithinItsBounds) {
  TailSlowdown tail(0.999);
  for (int i = 0; i < 1000; ++i) tail.Learn(100, 1e6);
  EXPECT_EQ(tail.factor(), TailSlowdown::kMost);
  for (int i = 0; i < 1000; ++i) tail.Learn(100, 1);
  EXPECT_EQ(tail.factor(), 1);
}

TEST(TailSlowdown, LearnsNothingWhereNothingWasExpected) {
  TailSlowdown tail(0.999);
  for (int i = 0; i < 1000; ++i) tail.Learn(1, 3);
  EXPECT_EQ(tail.factor(), 1);
}

}  // namespace
}  // namespace tactus
