// How much more than predicted is to be feared. Without these a few lucky or unlucky batches could
// decide who may join whom.
#include "policies/strait/excess_tail.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

// What neighbours cost is anything from nothing to five times what was predicted.
void Live(ExcessTail& tail, int batches) {
  Rng rng = Rng::Stream(1, "excess tail");
  for (int i = 0; i < batches; ++i) {
    const double predicted = 1 + rng.Uniform();
    tail.Learn(predicted, 1 + 5 * rng.Uniform() * (predicted - 1));
  }
}

TEST(ExcessTail, LearnsTheQuantileOfWhatItCostsToWhatWasPredicted) {
  for (const double quantile : {0.5, 0.9, 0.99}) {
    ExcessTail tail(quantile);
    EXPECT_EQ(tail.factor(), 1);
    Live(tail, 20'000);
    EXPECT_NEAR(tail.factor(), 5 * quantile, 0.5);
    EXPECT_DOUBLE_EQ(tail.Of(1.5), 1 + tail.factor() / 2);
  }
}

TEST(ExcessTail, WithoutAQuantileNobodyIsUnlucky) {
  ExcessTail tail(0);
  Live(tail, 1000);
  EXPECT_EQ(tail.factor(), 1);
  EXPECT_EQ(tail.Of(1.1), 1.1);
}

TEST(ExcessTail, StaysWithinItsBounds) {
  ExcessTail tail(0.999);
  for (int i = 0; i < 1000; ++i) tail.Learn(100, 1e6);
  EXPECT_EQ(tail.factor(), ExcessTail::kMost);
  for (int i = 0; i < 1000; ++i) tail.Learn(100, 1);
  EXPECT_EQ(tail.factor(), 1);
}

TEST(ExcessTail, LearnsNothingWhereNothingWasExpected) {
  ExcessTail tail(0.999);
  for (int i = 0; i < 1000; ++i) tail.Learn(1, 3);
  EXPECT_EQ(tail.factor(), 1);
}

}  // namespace
}  // namespace tactus
