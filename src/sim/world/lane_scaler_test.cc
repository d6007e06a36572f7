#include "sim/world/lane_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

TimePoint AtSecond(int second) { return kStart + Seconds(second); }

// Bad from the start, then idle: lanes asked for come late, and are given up when not needed.
TEST(LaneScaler, StartsLanesLateAndClosesThemAtOnce) {
  LaneScaler scaler(
      {.advice = {.most = 8}, .window = Seconds(5), .start_delay = Seconds(30), .initial = 2});
  EXPECT_EQ(scaler.Advise(AtSecond(0), {.at = AtSecond(0)}), 0);
  // Half of it bad: twice the lanes.
  EXPECT_EQ(scaler.Advise(AtSecond(5), {AtSecond(5), 50, 50, Seconds(10), Seconds(10)}), 2);
  EXPECT_EQ(scaler.open(), 2);
  EXPECT_EQ(scaler.starting(), 2);
  // Still bad: what was asked for is on its way.
  EXPECT_EQ(scaler.Advise(AtSecond(10), {AtSecond(10), 100, 100, Seconds(20), Seconds(20)}), 0);
  scaler.Ready({AtSecond(35), 275, 100, Seconds(50), Seconds(70)});
  EXPECT_EQ(scaler.open(), 3);
  // Since the third came: 4 of 15 s busy, nothing bad. One lane is enough, and none need start.
  EXPECT_EQ(scaler.Advise(AtSecond(40), {AtSecond(40), 300, 100, Seconds(54), Seconds(85)}), 0);
  EXPECT_EQ(scaler.open(), 1);
  EXPECT_EQ(scaler.starting(), 0);
  scaler.Ready({.at = AtSecond(40)});  // it was given up
  EXPECT_EQ(scaler.open(), 1);
  ASSERT_EQ(scaler.history().size(), 4u);
  EXPECT_EQ(scaler.history()[1].advised, 4);
  EXPECT_EQ(scaler.history()[2].starting, 2);
}

// A lane that comes up begins a new window. Until it is full nothing is given back, nor are the
// others of the same call for help, which are still on their way.
TEST(LaneScaler, KeepsLanesThatStartWhenOneOfThemComes) {
  LaneScaler scaler(
      {.advice = {.most = 8}, .window = Seconds(5), .start_delay = Seconds(10), .initial = 2});
  EXPECT_EQ(scaler.Advise(AtSecond(0), {.at = AtSecond(0)}), 0);
  EXPECT_EQ(scaler.Advise(AtSecond(5), {AtSecond(5), 50, 50, Seconds(10), Seconds(10)}), 2);
  scaler.Ready({AtSecond(15), 200, 60, Seconds(30), Seconds(30)});
  EXPECT_EQ(scaler.open(), 3);
  EXPECT_EQ(scaler.Advise(AtSecond(16), {AtSecond(16), 230, 60, Seconds(32), Seconds(33)}), 0);
  EXPECT_EQ(scaler.starting(), 1);
  scaler.Ready({AtSecond(16), 230, 60, Seconds(32), Seconds(33)});
  EXPECT_EQ(scaler.open(), 4);
}

Expected<SimulationResult> SimulateIt(const Scenario& scenario, const ProfileFile& profile) {
  auto policy = MakePolicy(scenario.policy);
  return Simulate(scenario, profile, **policy);
}

ProfileFile OneModel() {
  ProfileFile profile;
  profile.provenance = "made up for a test";
  profile.models = {AffineModelOf("m", Millis(5), Millis(1), 32)};
  return profile;
}

Scenario Scaled(double rate_rps) {
  Scenario scenario = ScenarioOf(OneModel(), rate_rps, 300);
  scenario.policy = "symphony:published";  // with a flat top, on which the rule rests
  scenario.expiry = "unmeetable";
  scenario.models[0].slo_ms = 40;
  scenario.lanes = 24;
  scenario.scale_interval_s = 5;
  scenario.scale_start_delay_s = 20;
  return scenario;
}

// The rule must find the lanes that a load needs from either side, and then stay there.
TEST(Autoscaling, FindsTheLanesThatTheLoadNeeds) {
  for (const int initial : {1, 24}) {
    Scenario scenario = Scaled(4000);
    scenario.scale_initial = initial;
    const auto result = SimulateIt(scenario, OneModel());
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->scaling.size(), 60u);
    EXPECT_EQ(result->scaling.front().open, initial);
    // AtSecond batches of 16 or so 4000 r/s need about 5.3 lanes.
    for (std::size_t i = 40; i < 60; ++i) {
      const ScalingPoint& point = result->scaling[i];
      EXPECT_GE(point.open, 5) << initial << " at " << point.at_s;
      EXPECT_LE(point.open, 9) << initial << " at " << point.at_s;
      EXPECT_LE(point.bad_ratio, 0.02) << initial << " at " << point.at_s;
    }
  }
}

// A scheduler that is slow to decide misses deadlines that it deferred to, on lanes that are idle.
// More of them would be as idle.
TEST(Autoscaling, AddsNoLaneWhereOneWasAlwaysFree) {
  Scenario scenario = Scaled(400);
  scenario.scale_initial = 12;
  scenario.scale_least = 4;  // two would both run something, which tells them from no shortage
  scenario.decision_cost_us = 4000;
  const auto result = SimulateIt(scenario, OneModel());
  ASSERT_TRUE(result) << result.error().message;
  int bad = 0;
  for (const ScalingPoint& point : result->scaling) {
    bad += point.bad_ratio > 0.01;
    EXPECT_LE(point.advised, point.open) << point.at_s;
  }
  EXPECT_GE(bad, 30) << "the scheduler was to be late";
  EXPECT_EQ(result->scaling.back().open, 4);
}

// Between asking and having, nothing may open.
TEST(Autoscaling, NoLaneOpensBeforeItsStartDelay) {
  const auto result = SimulateIt(Scaled(4000), OneModel());
  ASSERT_TRUE(result);
  for (const ScalingPoint& point : result->scaling) {
    if (point.at_s < 25) {
      EXPECT_EQ(point.open, 1) << point.at_s;
    }
  }
  for (std::size_t lane = 1; lane < 24; ++lane) {
    EXPECT_GE(result->lanes[lane].closed, Seconds(25)) << lane;
  }
  EXPECT_EQ(result->lanes[0].closed, Duration{});
}

TEST(Autoscaling, ReportsTheLanesThatWereThere) {
  const Scenario scenario = Scaled(1000);
  const auto result = SimulateIt(scenario, OneModel());
  ASSERT_TRUE(result);
  const RunReport report = MakeReport(scenario, OneModel(), *result);
  double open = 0;
  for (const ScalingPoint& point : report.scaling) open += point.open;
  open /= static_cast<double>(report.scaling.size());
  EXPECT_NEAR(MeanOpenLanes(report), open, 0.2);
  EXPECT_LT(IdleRatio(report), 0.5);  // of the open ones: most of the 24 never opened
  EXPECT_THAT(ScalingTable(report), ::testing::HasSubstr("open on average"));
}

// The same lanes without autoscaling must not change at all.
TEST(Autoscaling, IsOffUnlessAskedFor) {
  Scenario scenario = Scaled(1000);
  scenario.scale_interval_s = 0;
  const auto result = SimulateIt(scenario, OneModel());
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->scaling.empty());
  for (const LaneTotals& lane : result->lanes) EXPECT_EQ(lane.closed, Duration{});
  EXPECT_EQ(ScalingTable(MakeReport(scenario, OneModel(), *result)), "");
}

}  // namespace
}  // namespace tactus
