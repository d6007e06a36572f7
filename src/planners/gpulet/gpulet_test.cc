// Elastic partitioning and the ideal planner: worked by hand, and what must hold of any load.
#include <gtest/gtest.h>

#include "planners/gpulet/elastic.h"
#include "planners/gpulet/gpulet_testing.h"
#include "planners/gpulet/ideal.h"
#include "planners/gpulet/layout.h"
#include "planners/nexus/squishy.h"

namespace tactus {
namespace {

TEST(Knee, IsWhereAnotherPercentStopsPaying) {
  TestProblem flat = MakeTestProblem({{.slo = Millis(8), .parallel_at_one = 0.4}}, 1, 2);
  flat.input.profile = &flat.profile;
  // l(1) = 3 ms on 0.4 and more, and 2 l(2) <= 8 on the whole device alone.
  EXPECT_EQ(flat.input.share(Knee(flat.input, ModelId{0})), 0.4);
  TestProblem steep = MakeTestProblem({{.slo = Millis(1000), .parallel_at_one = 1}}, 1, 4);
  steep.input.profile = &steep.profile;
  EXPECT_EQ(steep.input.share(Knee(steep.input, ModelId{0})), 1);  // every percent pays alike
}

TEST(Elastic, GivesEachModelTheShareItNeedsAndLeavesTheRest) {
  TestProblem problem =
      MakeTestProblem({{.rate_rps = 100, .slo = Millis(8), .parallel_at_one = 0.4},
                       {.rate_rps = 90, .slo = Millis(8), .parallel_at_one = 0.4}},
                      1, 1);
  problem.input.profile = &problem.profile;
  const auto plan = PlanElastic(problem.input, {.epoch = 7});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->epoch, 7u);
  ASSERT_EQ(plan->lanes.size(), 2u);  // one after the other would take 6 of the 5 ms that 8 leave
  EXPECT_EQ(plan->lanes[0].spec.fraction, 0.4);
  EXPECT_EQ(plan->lanes[1].spec.fraction, 0.6);
  EXPECT_TRUE(Validate(*plan, problem.input));
}

TEST(Elastic, SaysWhichModelLacksHowMuch) {
  TestProblem problem = MakeTestProblem({{.rate_rps = 10'000, .slo = Millis(24)}}, 2);
  problem.input.profile = &problem.profile;
  const auto plan = PlanElastic(problem.input, {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(plan.error().message.find("'m0' lacks"), std::string::npos) << plan.error().message;
  EXPECT_NE(plan.error().message.find("of 10000 requests/s"), std::string::npos);
}

// One order and one rule leave loads unserved that others carry.
TEST(Elastic, WhoeverFellShortIsFirstInTheNextRound) {
  int more = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "retry");
    TestProblem problem = MakeTestProblem(RandomTestModels(rng, 4), 2, 6);
    problem.input.profile = &problem.profile;
    for (PlannedModel& model : problem.input.models) model.rate_rps *= 0.5;
    const auto once = PlanElastic(problem.input, {});
    const auto retried = PlanElasticRetrying(problem.input, {.epoch = 3});
    more += retried.has_value() ? 1 : 0;
    more -= once.has_value() ? 1 : 0;
    if (retried) {
      EXPECT_EQ(retried->epoch, 3u);
      EXPECT_TRUE(Validate(*retried, problem.input))
          << Validate(*retried, problem.input).error().message;
    } else {
      EXPECT_NE(retried.error().message.find(" lacks "), std::string::npos);
    }
  }
  EXPECT_GT(more, 10);
}

TEST(Layout, SplitsAndReverts) {
  TestProblem problem = MakeTestProblem({{}}, 2, 1, {0.3, 0.4, 0.6, 1});
  problem.input.profile = &problem.profile;
  Layout layout(problem.input, nullptr);
  EXPECT_FALSE(layout.Split(0, LaneClass{0}));  // nobody profiled 0.7
  ASSERT_TRUE(layout.Split(0, LaneClass{1}));
  EXPECT_EQ(layout.Free(), (std::vector<int>{0, 2, 1}));  // 0.4, 0.6, 1
  layout.RevertSplit(2);
  EXPECT_EQ(layout.gpulets().size(), 2u);
  ASSERT_TRUE(layout.Split(1, LaneClass{1}));
  layout.Add(1, ModelId{0}, 1);
  layout.RevertSplit(2);  // its other half serves
  EXPECT_EQ(layout.gpulets().size(), 3u);
}

// A neighbour that slows others by half keeps out whoever could not bear it, and is kept out where
// somebody there could not.
TEST(Layout, ANewNeighbourMayNotBreakAnotherLanesSlo) {
  TestProblem problem =
      MakeTestProblem({{.rate_rps = 1, .slo = FromMillis(7.5), .parallel_at_one = 0.4},
                       {.rate_rps = 1, .slo = Millis(100), .parallel_at_one = 0.4}},
                      1, 1);
  problem.input.profile = &problem.profile;
  const InterferenceModel half_longer{.c = {0, 0, 0, 0, 1.5}};
  Layout layout(problem.input, &half_longer);
  ASSERT_TRUE(layout.Split(0, LaneClass{1}));
  EXPECT_EQ(layout.Most(0, ModelId{0}, 1), 1);  // 2 x 3 ms within 7.5, alone on the device
  layout.Add(0, ModelId{0}, 1);
  EXPECT_EQ(layout.Most(1, ModelId{1}, 1), 0);  // its neighbour would need 2 x 4.5 ms
  Layout calm(problem.input, nullptr);
  ASSERT_TRUE(calm.Split(0, LaneClass{1}));
  calm.Add(0, ModelId{0}, 1);
  EXPECT_EQ(calm.Most(1, ModelId{1}, 1), 1);
}

// Every plan keeps its promises, with and without interference, and the ideal planner schedules
// whatever another one can.
TEST(Ideal, SchedulesWhateverAnotherPlannerCanAndEveryPlanIsValid) {
  int other_plans = 0;
  int ideal_plans = 0;
  int loads = 0;
  const InterferenceModel interference{.c = {0.1, 0.2, 0.1, 0.2, 0.9}};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "gpulet");
    TestProblem problem = MakeTestProblem(RandomTestModels(rng, 3), 2, 6);
    problem.input.profile = &problem.profile;
    const PlanInput most = problem.input;
    const InterferenceModel* model = seed % 2 == 0 ? &interference : nullptr;
    auto ideal = IdealPlanner::Make(most, {.interference = model});
    ASSERT_TRUE(ideal) << ideal.error().message;
    for (int part = 1; part <= 10; ++part, ++loads) {
      SCOPED_TRACE("part " + std::to_string(part));
      PlanInput input = most;
      std::vector<double> rates;
      for (PlannedModel& each : input.models) {
        each.rate_rps *= 0.1 * part;
        rates.push_back(each.rate_rps);
      }
      const auto best = ideal->Solve(rates);
      if (best) {
        ++ideal_plans;
        EXPECT_TRUE(Validate(*best, input)) << Validate(*best, input).error().message;
      }
      const std::vector<std::pair<const char*, Expected<Plan>>> others = {
          {"gpulet", PlanElastic(input, {.interference = model})},
          {"self-tuning", PlanElastic(input, {.interference = model, .self_tuning = true})},
          {"gpulet-retry", PlanElasticRetrying(input, {.interference = model})},
          {"nexus", PlanSquishy(input, input.whole())}};
      for (const auto& [name, plan] : others) {
        if (!plan) continue;
        SCOPED_TRACE(name);
        ++other_plans;
        EXPECT_TRUE(Validate(*plan, input)) << Validate(*plan, input).error().message;
        EXPECT_TRUE(best.has_value());
      }
    }
  }
  EXPECT_GT(other_plans, loads / 3);
  EXPECT_LT(ideal_plans, loads);
}

TEST(Ideal, IsForAHandfulOfModels) {
  TestProblem problem = MakeTestProblem(std::vector<TestModel>(7), 1, 1);
  problem.input.profile = &problem.profile;
  const auto ideal = IdealPlanner::Make(problem.input, {});
  ASSERT_FALSE(ideal);
  EXPECT_NE(ideal.error().message.find("at most 6 models, not 7"), std::string::npos);
}

}  // namespace
}  // namespace tactus
