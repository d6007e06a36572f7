#include "workload/bounds.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

// Symphony, Table 2's settings.
constexpr AffineModel kResNet50{.alpha_ms = 1.053, .beta_ms = 5.072, .slo_ms = 25, .rate_rps = 1};
constexpr AffineModel kInceptionResNet{
    .alpha_ms = 5.090, .beta_ms = 18.368, .slo_ms = 70, .rate_rps = 1};

TEST(StaggeredBound, IsByWholeBatches) {
  EXPECT_NEAR(StaggeredBound(kResNet50, 8), 8 * 16 / (1.053 * 16 + 5.072) * 1000, 1e-6);
  EXPECT_NEAR(StaggeredBound(kResNet50, 8), 5839, 1);
  EXPECT_NEAR(StaggeredBound(kInceptionResNet, 8), 1083, 1);
}

TEST(StaggeredBound, IsNothingWhenOneRequestAloneIsLate) {
  EXPECT_EQ(StaggeredBound({.alpha_ms = 1, .beta_ms = 10, .slo_ms = 11}, 4), 0);
}

// One model, many lanes: gathering is then limited by the SLO alone, and the two bounds meet.
TEST(FluidPeak, MeetsTheStaggeredBoundForManyLanes) {
  const AffineModel models[] = {kResNet50};
  const int lanes = 100'000;
  EXPECT_NEAR(FluidPeak(models, lanes) / StaggeredBound(kResNet50, lanes), 1, 0.05);
}

TEST(FluidPeak, IsTheRateThatFillsTheLanes) {
  AffineModel models[] = {kResNet50, kInceptionResNet};
  models[0].rate_rps = 3;
  const double peak = FluidPeak(models, 8);
  models[0].rate_rps = peak * 3 / 4;
  models[1].rate_rps = peak / 4;
  EXPECT_NEAR(FluidLanes(models), 8, 1e-6);
}

// A model that sees less than one request in its slack runs alone and pays alpha + beta.
TEST(FluidLanes, CannotBatchWhatDoesNotCome) {
  AffineModel rare = kResNet50;
  rare.rate_rps = 2;
  EXPECT_NEAR(FluidLanes({&rare, 1}), 0.002 * (1.053 + 5.072), 1e-12);
}

}  // namespace
}  // namespace tactus
