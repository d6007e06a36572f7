// What devices have memory for, in every planner that divides them. Without these a plan could be
// made that no device can load, or a load refused without a word of memory.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/gpulet/gpulet_testing.h"
#include "planners/gpulet/ideal.h"
#include "planners/registry.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

// Batches of 16 take 18 ms on the whole device, 889 requests/s, and all twice as long on half of
// it, so that nothing is gained by a split.
class MemoryTest : public ::testing::Test {
 protected:
  // Two devices with room for two of these models each.
  void Ask(const std::vector<double>& rates_rps) {
    std::vector<TestModel> models;
    for (const double rate : rates_rps) {
      models.push_back({.rate_rps = rate, .parallel_at_one = 1});
    }
    problem_ = MakeTestProblem(models, 2);
    problem_.input.profile = &problem_.profile;
    problem_.input.device.memory_mb = 1300;
    for (PlannedModel& model : problem_.input.models) model.memory_mb = 600;
  }

  Expected<Plan> Solve(std::string_view planner) const {
    if (planner != "ideal") return (*MakePlanner(planner, std::nullopt))->Solve(problem_.input);
    const auto ideal = IdealPlanner::Make(problem_.input, {});
    if (!ideal) return std::unexpected(ideal.error());
    std::vector<double> rates;
    for (const PlannedModel& model : problem_.input.models) rates.push_back(model.rate_rps);
    return ideal->Solve(rates);
  }

  static std::vector<std::string_view> Planners() {
    std::vector<std::string_view> names(PlannerNames().begin(), PlannerNames().end());
    names.push_back("ideal");
    return names;
  }

  TestProblem problem_;
};

TEST_F(MemoryTest, WhatOneDeviceCouldServeButNotHoldIsPutOnTwo) {
  Ask({10, 10, 10});
  for (const std::string_view planner : Planners()) {
    SCOPED_TRACE(planner);
    const auto plan = Solve(planner);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_TRUE(Validate(*plan, problem_.input)) << Validate(*plan, problem_.input).error().message;
  }
  problem_.input.device.memory_mb = std::numeric_limits<double>::infinity();
  for (const std::string_view planner : {"gpulet", "nexus", "nexus-half"}) {
    SCOPED_TRACE(planner);
    const auto plan = Solve(planner);
    ASSERT_TRUE(plan) << plan.error().message;
    for (const LanePlan& lane : plan->lanes) EXPECT_EQ(lane.spec.device, DeviceId{0});
  }
}

// The first needs both devices, which then have room for one more each; the others are light.
TEST_F(MemoryTest, ThatItIsInTheWayIsSaidWithWhatADeviceWouldNeed) {
  Ask({1067, 10, 10, 10});
  const char* gpulet =
      "no place for all requests of model 'm2'; memory is in its way on 1 of 2 devices: with it "
      "the models of device 1 need 1800 MB ('m2' 600, 'm0' 600, 'm1' 600); it has 1300";
  const char* nexus =
      "where a device has memory for 1300 of the models' 2400 MB ('m0' 600, 'm1' 600, 'm2' 600, "
      "'m3' 600)";
  const std::pair<std::string_view, const char*> all[] = {
      {"gpulet", gpulet},
      {"gpulet-retry", "memory is in its way on "},
      {"nexus", nexus},
      {"nexus-half", nexus},
      {"ideal", "no placement that their memory allows sustains these rates"}};
  for (const auto& [planner, says] : all) {
    SCOPED_TRACE(planner);
    const auto plan = Solve(planner);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(plan.error().message, HasSubstr(says));
  }
  problem_.input.device.memory_mb = 2400;
  for (const auto& [planner, says] : all) {
    EXPECT_TRUE(Solve(planner)) << planner << " has all that it needs but memory";
  }
}

// Neither another division of the devices nor less load would help, so nothing is tried.
TEST_F(MemoryTest, WhatCannotBePlannedAtAllIsSaidAlikeByEveryPlanner) {
  Ask({10, 10, 10});
  const auto all_say = [&](const char* what) {
    for (const std::string_view planner : Planners()) {
      SCOPED_TRACE(planner);
      const auto plan = Solve(planner);
      ASSERT_FALSE(plan);
      EXPECT_EQ(plan.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(plan.error().message, HasSubstr(what));
    }
  };
  problem_.input.device.memory_mb = 700;
  all_say(
      "the models need 1800 MB ('m0' 600, 'm1' 600, 'm2' 600); all devices together have 1400: "
      "more");
  problem_.input.models[2].memory_mb = 800;
  all_say("model 'm2' needs 800 MB; a device has 700: only devices with more memory help");
  problem_.input.models[1].slo = Millis(5);
  all_say(
      "model 'm1': no batch meets half of its SLO of 5 ms on any share: the quickest takes 3 "
      "ms; a longer SLO helps");
}

}  // namespace
}  // namespace tactus
