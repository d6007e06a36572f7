// Without this, a plan would be taken for good that holds only where requests come evenly.
#include "core/chance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/chance_bound.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

class ChanceTest : public ::testing::Test {
 protected:
  // Two models alike, on whole devices: batches of 1 to 4 take 10, 11, 12, 13 ms.
  ChanceTest() {
    const ProfileTable::ModelRows rows{
        .exits = 1, .max_batch = 4, .latency = {Millis(10), Millis(11), Millis(12), Millis(13)}};
    profile_ = ProfileTable(1, std::vector{rows, rows});
    input_ = {.models = {{.name = "a", .slo = Millis(100)}, {.name = "b", .slo = Millis(100)}},
              .profile = &profile_,
              .shares = {1},
              .devices = 2};
  }
  static PlanEntry Entry(int model, int batch, Duration offset, Duration length) {
    return {.model = ModelId{static_cast<ModelId::rep>(model)},
            .batch = batch,
            .offset = offset,
            .length = length};
  }
  void AddLane(Duration cycle, std::vector<PlanEntry> entries) {
    LanePlan& lane = plan_.lanes.emplace_back();
    lane.spec = {.device = DeviceId{static_cast<DeviceId::rep>(plan_.lanes.size() - 1)}};
    lane.cycle = cycle;
    lane.entries = std::move(entries);
  }
  double Ratio(double a_rps, double b_rps = 0) {
    input_.models[0].expected_rps = a_rps;
    input_.models[1].expected_rps = b_rps;
    const auto violations = ViolationsByChance(plan_, input_).models;
    EXPECT_EQ(violations.size(), 2u);
    return violations[0].ratio;
  }

  ProfileTable profile_;
  PlanInput input_;
  Plan plan_;
};

TEST_F(ChanceTest, NothingIsLostOfNothingNorWhereThereIsMuchRoom) {
  AddLane(Millis(13), {Entry(0, 4, {}, Millis(13))});
  EXPECT_EQ(Ratio(0), 0);
  EXPECT_LE(Ratio(30), 0.001) << "a bound, where nothing is simulated";
}

// A server without a queue (Erlang's loss formula, B = r / (1 + r)): no request can wait, so those
// that come while a batch runs are given up.
TEST_F(ChanceTest, WithoutRoomToWaitItIsErlangsLoss) {
  input_.models[0].slo = Millis(10);
  AddLane(Millis(10), {Entry(0, 1, {}, Millis(10))});
  for (const double rate_rps : {5.0, 20.0, 100.0}) {
    const double busy = rate_rps * 0.010;
    EXPECT_NEAR(Ratio(rate_rps), busy / (1 + busy), 0.02) << rate_rps;
  }
}

TEST_F(ChanceTest, WhatIsBeyondTheLaneIsLost) {
  AddLane(Millis(13), {Entry(0, 4, {}, Millis(13))});
  const double most_rps = 4 / 0.013;
  EXPECT_NEAR(Ratio(2 * most_rps), 0.5, 0.02);
}

// Each lane has half of the requests and its own luck, but they share a queue.
TEST_F(ChanceTest, TwoLanesOfAModelLoseLessThanOneWithHalfOfTheLoad) {
  input_.models[0].slo = Millis(26);
  AddLane(Millis(13), {Entry(0, 4, {}, Millis(13))});
  const double one = Ratio(230);
  AddLane(Millis(13), {Entry(0, 4, {}, Millis(13))});
  const double two = Ratio(460);
  EXPECT_GT(one, 0.005);
  EXPECT_LT(two, 0.5 * one);
}

// The window is longer than the batch where the device's other lane slows it.
TEST_F(ChanceTest, NeighboursCountAsFarAsTheyAreBusy) {
  input_.models[0].slo = Millis(40);
  AddLane(Millis(20), {Entry(0, 4, {}, Millis(19))});
  const double alone = Ratio(200);
  AddLane(Millis(100), {Entry(1, 1, {}, Millis(10))});
  plan_.lanes[1].spec.device = DeviceId{0};
  const double beside_little = Ratio(200, 1);
  plan_.lanes[1].cycle = Millis(10);
  const double beside_much = Ratio(200, 1);
  EXPECT_LT(alone, 0.01);
  EXPECT_LE(alone, beside_little);
  EXPECT_GT(beside_much, beside_little + 0.05);
}

TEST_F(ChanceTest, TheSamePlanLosesTheSame) {
  AddLane(Millis(24), {Entry(0, 2, {}, Millis(11)), Entry(1, 4, Millis(11), Millis(13))});
  input_.models[0].slo = Millis(40);
  const double once = Ratio(70, 140);
  EXPECT_GT(once, 0);
  EXPECT_EQ(Ratio(70, 140), once);
}

// Otherwise the short run in which the one is found out would judge the other, and all.
TEST_F(ChanceTest, EveryModelAndAllTogetherAreJudgedFromALongEnoughRun) {
  input_.models[0].slo = Millis(20);
  input_.models[1].slo = Millis(44);
  AddLane(Millis(24), {Entry(0, 2, {}, Millis(11)), Entry(1, 4, Millis(11), Millis(13))});
  input_.models[0].expected_rps = 20;
  input_.models[1].expected_rps = 90;
  const PlanViolations violations = ViolationsByChance(plan_, input_);
  EXPECT_GT(violations.models[0].ratio, 0.05) << "clear at once";
  for (const ChanceViolations& each :
       {violations.models[0], violations.models[1], violations.all}) {
    EXPECT_TRUE(each.error <= 0.0015 ||
                std::abs(each.ratio - kMostViolationsByChance) >= 3 * each.error)
        << each.ratio << " +- " << each.error;
  }
}

// Of what is known precisely nothing is added, or plans with a few more pass by their
// error.
TEST_F(ChanceTest, OnlyWhatIsHardlyKnownIsGivenItsError) {
  EXPECT_FALSE(TooMany({.ratio = 0.006, .error = 0.001}));
  EXPECT_TRUE(TooMany({.ratio = 0.0061, .error = 0.0015}));
  EXPECT_FALSE(TooMany({.ratio = 0.01, .error = 0.005}));
  EXPECT_TRUE(TooMany({.ratio = 0.012, .error = 0.005}));
}

// A planner asks of many plans that have lanes in common.
TEST_F(ChanceTest, WhatWasAskedBeforeDoesNotMatter) {
  input_.models[0].slo = Millis(40);
  input_.models[0].expected_rps = 70;
  input_.models[1].expected_rps = 140;
  ChanceEstimator estimator(input_);
  AddLane(Millis(24), {Entry(0, 2, {}, Millis(11)), Entry(1, 4, Millis(11), Millis(13))});
  const Plan one = plan_;
  plan_.lanes.clear();
  AddLane(Millis(13), {Entry(0, 4, {}, Millis(13))});
  AddLane(Millis(13), {Entry(1, 4, {}, Millis(13))});
  const Plan other = plan_;
  estimator.UntilRefused(one);
  for (const Plan& plan : {one, other, one}) {
    const PlanViolations alone = ViolationsByChance(plan, input_);
    const PlanViolations after = estimator.Of(plan);
    EXPECT_EQ(after.all.ratio, alone.all.ratio);
    EXPECT_EQ(after.all.error, alone.all.error);
    const auto refuses = [](const PlanViolations& violations) {
      return std::ranges::any_of(violations.models, TooMany);
    };
    EXPECT_EQ(refuses(estimator.UntilRefused(plan)), refuses(alone));
  }
}

// Else plans would be accepted whose lanes nobody ran.
TEST_F(ChanceTest, NoMoreIsLostThanTheBoundSays) {
  int told = 0;
  const PlannedModel model = input_.models[0];
  for (const bool alone : {true, false}) {
    for (const int batch : {1, 2, 4}) {
      for (const std::int64_t slo_ms : {26, 45, 60, 100}) {
        for (const double rate_rps : {5.0, 20.0, 40.0, 80.0, 160.0, 240.0}) {
          input_.models = {model, model};
          input_.models[0].slo = Millis(slo_ms);
          input_.models[0].expected_rps = rate_rps;
          input_.models[1].expected_rps = 20;
          LaneWork lane = {.lane_class = LaneClass{0}, .alone = alone};
          lane.turns.push_back(
              {.model = ModelId{0}, .batch = batch, .slowdown = 10, .weight = 1024});
          if (!alone) lane.turns.push_back({.model = ModelId{1}, .batch = 1, .weight = 1024});
          const double most = MostViolationsByChance(lane, 0, input_);
          if (most > 0.1) continue;
          ++told;
          ArrivalStreams streams;
          LanesRun run(std::vector{lane}, input_, streams);
          run.RunSlice(20'000);
          const LanesRun::Counted& counted = run.counted(0, 1);
          const auto came = static_cast<double>(counted.arrived);
          EXPECT_LE(static_cast<double>(counted.violations) / came,
                    most + 4 * std::sqrt(most / came))
              << batch << " of " << rate_rps << "/s in " << slo_ms << " ms, alone " << alone;
        }
      }
    }
  }
  EXPECT_GE(told, 30);
}

TEST_F(ChanceTest, APlanThatLosesTooMuchIsRefused) {
  input_.models[0].slo = Millis(26);
  AddLane(Millis(13), {Entry(0, 4, {}, Millis(13))});
  input_.models[0].rate_rps = 4 / 0.013;
  EXPECT_TRUE(Validate(plan_, input_)) << "nothing is said of what comes";
  input_.models[0].expected_rps = 60;
  EXPECT_TRUE(Validate(plan_, input_));
  input_.models[0].expected_rps = 250;
  EXPECT_TRUE(ValidateLanes(plan_, input_)) << "it may serve";
  const auto refused = Validate(plan_, input_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("the plan sustains the load only if requests come evenly: as they come by "
                        "chance, about "));
  // Of few among many it is not too much.
  AddLane(Millis(13), {Entry(1, 4, {}, Millis(13))});
  input_.models[0].expected_rps = 1;
  input_.models[0].slo = Millis(9);  // never met
  input_.models[1].expected_rps = 200;
  const auto violations = ViolationsByChance(plan_, input_);
  EXPECT_EQ(violations.models[0].ratio, 1);
  EXPECT_NEAR(violations.all.ratio, 1.0 / 201, 0.001);
}

}  // namespace
}  // namespace tactus
