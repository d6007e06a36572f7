// When a layout changes and when it stays. Without these a server could split its device anew at
// every look, keep a layout that sustains nothing, or leave a model without a place.
#include "placement/replanner.h"

#include <limits>
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/registry.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two models, whose batches of 4 take 100 ms on a whole device and four times as long on a quarter:
// 40 requests/s a device.
class ReplannerTest : public ::testing::Test {
 protected:
  ReplannerTest() : table_(4, Rows()) {
    options_.least_rps = 0.1;
    input_.models = {{.name = "a", .slo = Seconds(4)}, {.name = "b", .slo = Seconds(4)}};
    input_.profile = &table_;
    input_.shares = {0.25, 0.5, 0.75, 1};
  }
  static std::vector<ProfileTable::ModelRows> Rows() {
    ProfileTable::ModelRows rows{.exits = 1, .max_batch = 4, .latency = {}};
    for (const double share : {0.25, 0.5, 0.75, 1.0}) {
      for (int b = 1; b <= 4; ++b) rows.latency.push_back(FromMillis(25 * b / share));
    }
    return {rows, rows};
  }
  Replanner Make() { return {input_, *MakePlanner("gpulet", std::nullopt), options_}; }
  // Seconds of so many requests of each model, all in time; the plan that follows, if any.
  static std::optional<Plan> Pass(Replanner& replanner, const Plan& current, int seconds, int a,
                                  int b) {
    for (int s = 0; s < seconds; ++s) {
      replanner.Arrived(ModelId{0}, a);
      replanner.Arrived(ModelId{1}, b);
      replanner.Ended(true, a + b);
      if (auto plan = replanner.Look(current, false)) return plan;
    }
    return std::nullopt;
  }
  // What the model has of the device's time: its lanes' shares, by its windows in them.
  static double ShareOf(const Plan& plan, ModelId::rep m) {
    double share = 0;
    for (const LanePlan& lane : plan.lanes) {
      for (const PlanEntry& entry : lane.entries) {
        if (entry.model != ModelId{m}) continue;
        share += lane.spec.fraction * ToSeconds(entry.length) / ToSeconds(lane.cycle);
      }
    }
    return share;
  }

  ProfileTable table_;
  ReplannerOptions options_;
  PlanInput input_;
};

TEST_F(ReplannerTest, WithoutALoadEachModelHasAPlaceAllTheSame) {
  Replanner replanner = Make();
  const auto first = replanner.First();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(ShareOf(*first, 0), 0);
  EXPECT_GT(ShareOf(*first, 1), 0);
  EXPECT_FALSE(Pass(replanner, *first, 100, 0, 0)) << "nothing came, so nothing is to change";
}

TEST_F(ReplannerTest, SharesFollowTheLoadFromOneModelToTheOther) {
  Replanner replanner = Make();
  Plan plan = *replanner.First();
  auto next = Pass(replanner, plan, 60, 20, 1);
  ASSERT_TRUE(next);
  plan = *next;
  while ((next = Pass(replanner, plan, 60, 20, 1))) plan = *next;
  EXPECT_GT(ShareOf(plan, 0), 2 * ShareOf(plan, 1));
  while ((next = Pass(replanner, plan, 60, 1, 20))) plan = *next;
  EXPECT_GT(ShareOf(plan, 1), 2 * ShareOf(plan, 0));
  EXPECT_THAT(replanner.shortage(), IsEmpty());
}

TEST_F(ReplannerTest, MissedDeadlinesBringTheQuestionForward) {
  Replanner replanner = Make();
  const Plan first = *replanner.First();
  EXPECT_FALSE(Pass(replanner, first, 3, 20, 1)) << "the period is not over";
  replanner.Arrived(ModelId{0}, 20);
  replanner.Ended(false, 10);
  EXPECT_TRUE(replanner.Look(first, false));
}

// It says what is missing, and changes the layout only where another sustains more of the load.
TEST_F(ReplannerTest, AnOverloadHasOnePlanAndAShortage) {
  Replanner replanner = Make();
  const Plan first = *replanner.First();
  const auto next = Pass(replanner, first, 60, 300, 1);
  ASSERT_TRUE(next);
  EXPECT_GT(ShareOf(*next, 0), 0.5);
  EXPECT_THAT(replanner.shortage(), HasSubstr("'a' lacks"));
  Plan plan = *next;
  while (const auto more = Pass(replanner, plan, 60, 300, 1)) plan = *more;  // the average rises
  EXPECT_FALSE(Pass(replanner, plan, 200, 300, 1)) << "as much as there is";
  EXPECT_GT(ShareOf(plan, 1), 0);
  EXPECT_FALSE(replanner.shortage().empty());
  while (const auto less = Pass(replanner, plan, 60, 1, 20)) plan = *less;
  EXPECT_THAT(replanner.shortage(), IsEmpty());
}

TEST_F(ReplannerTest, AModelThatComesIsAskedForAtOnce) {
  input_.models.pop_back();
  const std::vector<ProfileTable::ModelRows> one = {Rows()[0]};
  ProfileTable alone(4, one);
  input_.profile = &alone;
  Replanner replanner = Make();
  const Plan first = *replanner.First();
  EXPECT_FALSE(replanner.Look(first, false));
  input_.models.push_back({.name = "b", .slo = Seconds(4)});
  input_.profile = &table_;
  replanner.Serve(input_);
  const auto next = replanner.Look(first, false);
  ASSERT_TRUE(next);
  EXPECT_GT(ShareOf(*next, 1), 0);
  EXPECT_FALSE(replanner.Look(*next, false));
}

// A device that refuses a lane would else be asked for it every second.
TEST_F(ReplannerTest, APlanThatIsGivenUpIsNotGivenAgainInItsPeriod) {
  Replanner replanner = Make();
  const Plan first = *replanner.First();
  ASSERT_TRUE(Pass(replanner, first, 20, 20, 1)) << "at the end of the first period";
  replanner.GivenUp();
  for (int s = 1; s < 20; ++s) {
    replanner.Arrived(ModelId{0}, 20);
    replanner.Ended(false, 20);
    EXPECT_FALSE(replanner.Look(first, false)) << s;
  }
  EXPECT_TRUE(Pass(replanner, first, 1, 20, 1));
}

// A rise would else wait for another period where the last plan took long to make.
TEST_F(ReplannerTest, WhatFallsDueWhileAPlanIsTakenUpIsAskedOnceThatIsDone) {
  Replanner replanner = Make();
  const Plan first = *replanner.First();
  for (int s = 1; s <= 25; ++s) {
    if (s <= 20) replanner.Arrived(ModelId{0}, 20);
    EXPECT_FALSE(replanner.Look(first, s >= 15)) << s;
  }
  const auto next = replanner.Look(first, false);
  ASSERT_TRUE(next) << "the period ended at 20";
  EXPECT_GT(ShareOf(*next, 0), 2 * ShareOf(*next, 1));
  EXPECT_DOUBLE_EQ(replanner.rates_rps()[0], 0.7 * 20) << "what came later is of the next period";
  for (int s = 27; s < 40; ++s) EXPECT_FALSE(replanner.Look(*next, false)) << s;
  EXPECT_EQ(replanner.questions(), 2);
}

TEST_F(ReplannerTest, AfterAPlanThatIsGivenUpWhatFellDueWaitsForThePeriod) {
  Replanner replanner = Make();
  const Plan first = *replanner.First();
  for (int s = 1; s <= 40; ++s) {
    replanner.Arrived(ModelId{0}, 20);
    if (s == 25) replanner.GivenUp();  // what it gave before 15
    const auto plan = replanner.Look(first, s >= 15 && s < 25);
    EXPECT_EQ(plan.has_value(), s == 40) << s;
  }
}

// Knows nothing of memory.
class Blind final : public Planner {
 public:
  std::string_view name() const override { return "blind"; }
  Expected<Plan> Solve(const PlanInput& input) override {
    PlanInput roomy = input;
    roomy.device.memory_mb = std::numeric_limits<double>::infinity();
    return (*MakePlanner("gpulet", std::nullopt))->Solve(roomy);
  }
};

// Else lanes would be made that cannot load their models.
TEST_F(ReplannerTest, APlanThatTheDeviceDoesNotHoldIsNotGiven) {
  const char* why = "the models of device 0 need 1200 MB ('a' 600, 'b' 600); it has 1000";
  for (PlannedModel& model : input_.models) model.memory_mb = 600;
  input_.device.memory_mb = 1000;
  Replanner replanner(input_, std::make_unique<Blind>(), options_);
  const auto first = replanner.First();
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, HasSubstr(why));
  replanner.Serve(input_);
  EXPECT_FALSE(replanner.Look({}, false));
  EXPECT_EQ(replanner.questions(), 2);
  EXPECT_THAT(replanner.shortage(), HasSubstr(why));
  input_.device.memory_mb = 1200;
  replanner.Serve(input_);
  EXPECT_TRUE(replanner.Look({}, false));
  EXPECT_THAT(replanner.shortage(), IsEmpty());
}

// Who looks for a load that has a plan goes by the code.
TEST_F(ReplannerTest, ALoadThatNoPlanSustainsIsToldFromAModelThatNoneServes) {
  input_.models[0].rate_rps = 300;
  const auto first = Make().First();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(first.error().message, HasSubstr("% of the load would fit"));
}

// It says so alone: what else would fit, and what each model lacks then, means nothing.
TEST_F(ReplannerTest, AModelThatNoShareCanServeIsNamed) {
  input_.models[1].slo = Millis(40);
  Replanner replanner = Make();
  const auto first = replanner.First();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kInvalidArgument) << "less load would not help";
  EXPECT_EQ(first.error().message,
            "model 'b': no batch meets half of its SLO of 40 ms on any share: the quickest takes "
            "25 ms; a longer SLO helps");
}

// A look may come late: rates are by the time that passed.
TEST_F(ReplannerTest, ALateLookCountsTheTimeThatPassed) {
  Replanner replanner = Make();
  const Plan first = *replanner.First();
  replanner.Arrived(ModelId{0}, 60);
  replanner.Look(first, false, Seconds(30));
  EXPECT_DOUBLE_EQ(replanner.rates_rps()[0], 0.7 * 2);
}

}  // namespace
}  // namespace tactus
