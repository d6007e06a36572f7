// A plan is held to what was asked, and each fault is named with its place.
#include "core/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    // Two models, batches of 1 and 2 in 4 and 6 ms on half a device, 2 and 3 on the whole.
    const ProfileTable::ModelRows rows{
        .exits = 1, .max_batch = 2, .latency = {Millis(4), Millis(6), Millis(2), Millis(3)}};
    profile_ = ProfileTable(2, std::vector{rows, rows});
    input_ = {.models = {{"a", 100, Millis(20), 600}, {"b", 50, Millis(30), 600}},
              .profile = &profile_,
              .shares = {0.5, 1},
              .devices = 1,
              .device = {.memory_mb = 1500}};
    plan_.lanes = {Half(ModelId{0}), Half(ModelId{1})};
  }

  static LanePlan Half(ModelId model) {
    return {.spec = {.device = DeviceId{0}, .lane_class = LaneClass{0}, .fraction = 0.5},
            .cycle = Millis(12),
            .entries = {{.model = model, .batch = 2, .offset = {}, .length = Millis(6)}}};
  }
  std::string Fault() const {
    const auto valid = Validate(plan_, input_);
    return valid ? "" : valid.error().message;
  }

  ProfileTable profile_;
  PlanInput input_;
  Plan plan_;
};

TEST_F(PlanTest, AcceptsWhatFits) { EXPECT_EQ(Fault(), ""); }

TEST_F(PlanTest, NamesWhatALaneCannotBe) {
  plan_.lanes[1].spec.device = DeviceId{3};
  EXPECT_THAT(Fault(), HasSubstr("lane 1 of the plan is on device 3; there are 1"));
  plan_.lanes[1].spec = {.device = DeviceId{0}, .lane_class = LaneClass{0}, .fraction = 0.7};
  EXPECT_THAT(
      Fault(),
      HasSubstr(
          "lane 1 of the plan is 70 % of its device, which was not profiled (50 %, 100 % were)"));
  plan_.lanes[1] = Half(ModelId{1});
  plan_.lanes[1].spec.lane_class = LaneClass{1};
  plan_.lanes[1].spec.fraction = 1;
  EXPECT_THAT(Fault(), HasSubstr("device 0 add up to 150 %"));
}

TEST_F(PlanTest, NamesWhatAnEntryCannotBe) {
  PlanEntry& entry = plan_.lanes[1].entries[0];
  entry.model = ModelId{2};
  EXPECT_THAT(Fault(), HasSubstr("of another model set"));
  entry = {.model = ModelId{1}, .batch = 3, .offset = {}, .length = Millis(6)};
  EXPECT_THAT(Fault(), HasSubstr("a batch of 3 of 'b' was not profiled; the largest is 2"));
  entry = {.model = ModelId{1}, .batch = 2, .offset = {}, .length = Millis(5)};
  EXPECT_THAT(Fault(), HasSubstr("shorter than its batch's 6 ms"));
  entry = {.model = ModelId{1}, .batch = 2, .offset = Millis(8), .length = Millis(6)};
  EXPECT_THAT(Fault(), HasSubstr("leaves the cycle of 12 ms"));
}

TEST_F(PlanTest, WindowsAreDisjoint) {
  plan_.lanes[0].entries.push_back({ModelId{1}, 1, Millis(5), Millis(4)});
  EXPECT_THAT(Fault(), HasSubstr("lane 0 of the plan: the window of 'b' at 5 ms overlaps"));
}

TEST_F(PlanTest, ARequestWaitsForACycleAndItsWindow) {
  input_.models[0].slo = Millis(17);
  EXPECT_THAT(Fault(), HasSubstr("'a' waits up to a cycle of 12 ms for a window of 6 ms"));
  input_.models[0].slo = Millis(20);
  EXPECT_EQ(Fault(), "");
  // Beside a neighbour a batch of 6 ms takes 9.
  plan_.lanes[0].entries[0].length = Millis(9);
  EXPECT_THAT(Fault(), HasSubstr("a window of 9 ms, which is more than its SLO of 20 ms"));
}

TEST_F(PlanTest, MemoryOfADevice) {
  input_.device.memory_mb = 1000;
  EXPECT_THAT(Fault(),
              HasSubstr("the models of device 0 need 1200 MB ('a' 600, 'b' 600); it has 1000"));
}

TEST_F(PlanTest, MemoryThatIsJustEnoughIsEnough) {
  input_.models[0].memory_mb = 0.1;
  input_.models[1].memory_mb = 0.2;
  input_.device.memory_mb = 0.3;  // a little less than the sum of the two, as doubles
  EXPECT_EQ(Fault(), "");
}

TEST_F(PlanTest, APlanForAPartOfTheLoadFitsAllTheSame) {
  input_.models[1].rate_rps = 200;
  EXPECT_TRUE(ValidateLanes(plan_, input_));
  EXPECT_FALSE(Validate(plan_, input_));
  input_.device.memory_mb = 1000;
  EXPECT_FALSE(ValidateLanes(plan_, input_));
}

// A request waits as long as a batch before its own runs.
TEST_F(PlanTest, NothingIsPlannedForAModelWhoseBatchesTakeMoreThanHalfOfItsSlo) {
  const auto fault = [&] {
    const auto plannable = CheckPlannable(input_);
    return plannable ? "" : plannable.error().message;
  };
  input_.models[1].slo = Millis(4);  // twice a batch of 1 on the whole device
  EXPECT_EQ(fault(), "");
  input_.models[1].slo = Millis(3);
  EXPECT_EQ(fault(),
            "model 'b': no batch meets half of its SLO of 3 ms on any share: the quickest takes 2 "
            "ms; a longer SLO helps");
  input_.models[1].rate_rps = 0;
  EXPECT_EQ(fault(), "") << "nobody asks for it";
  input_.device.memory_mb = 500;
  EXPECT_THAT(fault(), HasSubstr("model 'a' needs 600 MB; a device has 500"));
  input_.devices = 3;
  EXPECT_THAT(fault(), HasSubstr("model 'a' needs 600 MB; a device has 500"));
  input_.models[1] = input_.models[0];
  input_.device.memory_mb = 600;
  EXPECT_EQ(fault(), "");
  input_.devices = 1;
  EXPECT_THAT(fault(), HasSubstr("the models need 1200 MB ('a' 600, 'a' 600); all devices together "
                                 "have 600: more"));
  input_.shares = {0.5, 0.8};
  EXPECT_THAT(fault(), HasSubstr("end with 1"));
}

TEST_F(PlanTest, SaysWhichModelLacksHowMuch) {
  input_.models[1].rate_rps = 200;  // 2 in 12 ms sustain 166.7
  EXPECT_THAT(Fault(), HasSubstr("'b' lacks 33.3333"));
}

TEST_F(PlanTest, InputThatNobodyCanPlan) {
  const auto fault = [&] { return Validate(input_).error().message; };
  const PlanInput good = input_;
  input_.devices = 0;
  EXPECT_THAT(fault(), HasSubstr("at least one device"));
  input_ = good;
  input_.shares = {0.5, 0.8};
  EXPECT_THAT(fault(), HasSubstr("end with 1"));
  input_ = good;
  input_.models.pop_back();
  EXPECT_THAT(fault(), HasSubstr("of other models"));
  input_ = good;
  input_.models[0].slo = {};
  EXPECT_THAT(fault(), HasSubstr("model 'a'"));
}

TEST_F(PlanTest, WhatEachModelLacksIsOfTheLargestPartThatFits) {
  input_.models[1].rate_rps = 0;
  const PartialPlan half = LargestPart(input_, [&](const PlanInput& input) -> Expected<Plan> {
    if (input.models[0].rate_rps > 50) return InvalidArgument("too much");
    return plan_;
  });
  ASSERT_TRUE(half.plan);
  EXPECT_EQ(DescribeShortage(input_, half.part),
            "50 % of the load would fit; 'a' lacks 50 of 100 requests/s");
  input_.models[1].rate_rps = 8;
  const PartialPlan none =
      LargestPart(input_, [](const PlanInput&) -> Expected<Plan> { return InvalidArgument("no"); });
  EXPECT_FALSE(none.plan);
  EXPECT_THAT(DescribeShortage(input_, none.part),
              StartsWith("less than 2 % of the load would fit; 'a' lacks 100 of 100, 'b' lacks 8"))
      << "a 64th was too much; nothing less was tried";
}

}  // namespace
}  // namespace tactus
