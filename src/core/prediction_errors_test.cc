// Without these a percentile of errors could be of the wrong sign, or half of them forgotten.
#include "core/prediction_errors.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(RatioCounts, PercentilesWithAndWithoutTheSign) {
  RatioCounts counts;
  EXPECT_EQ(counts.Percentile(50), 0);
  EXPECT_EQ(counts.AbsolutePercentile(50), 0);
  for (const double ratio : {-0.3005, -0.1005, 0.0005, 0.2005, 5.0005}) counts.Add(ratio);
  EXPECT_EQ(counts.count(), 5);
  EXPECT_NEAR(counts.Percentile(20), -0.3, 1e-9);
  EXPECT_NEAR(counts.Percentile(40), -0.1, 1e-9);
  EXPECT_NEAR(counts.Percentile(50), 0.001, 1e-9);
  EXPECT_NEAR(counts.Percentile(100), 5.001, 1e-9);
  EXPECT_NEAR(counts.AbsolutePercentile(20), 0.001, 1e-9);
  EXPECT_NEAR(counts.AbsolutePercentile(40), 0.101, 1e-9);
  EXPECT_NEAR(counts.AbsolutePercentile(60), 0.201, 1e-9);
  EXPECT_NEAR(counts.AbsolutePercentile(80), 0.301, 1e-9);
  EXPECT_NEAR(counts.AbsolutePercentile(100), 5.001, 1e-9);
}

TEST(RatioCounts, WhatIsBeyondCountsAsTheEnd) {
  RatioCounts counts;
  counts.Add(1e9);
  counts.Add(-7);
  EXPECT_NEAR(counts.Percentile(100), 9, 1e-9);
  EXPECT_NEAR(counts.Percentile(50), -0.999, 1e-9);
  EXPECT_NEAR(counts.AbsolutePercentile(50), 1, 1e-9);
}

}  // namespace
}  // namespace tactus
