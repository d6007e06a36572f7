// Plans and the cost of deciding, as the simulator hands them to policies and charges them.
#include "sim/world/planning.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

// Clockwork's algorithm keeps a candidate for each of 10 batch sizes on each of 4 lanes: at 25 us
// each a request costs its thread a millisecond, whatever the lanes could do.
TEST(CandidateCost, HoldsUpAPolicyThatExaminesMany) {
  ProfileFile profile;
  profile.models.push_back(AffineModelOf("m", Micros(10), Micros(1), 10));
  Scenario scenario = ScenarioOf(profile, 2000, 5);
  scenario.models[0].slo_ms = 1e6;
  scenario.lanes = 4;
  const auto last = [&](double cost_us) {
    scenario.candidate_cost_us = cost_us;
    const auto result = Simulate(scenario, profile, **MakePolicy("clockwork"));
    return ToSeconds(result->last - kStart);
  };
  EXPECT_NEAR(last(0), 5, 0.1);
  EXPECT_NEAR(last(25), 10, 0.5);
  // What the policy's own options say goes before what the scenario says of all.
  const auto own = [&](const char* text) {
    const auto result = Simulate(scenario, profile, **MakePolicy(text));
    return ToSeconds(result->last - kStart);
  };
  scenario.candidate_cost_us = 0;
  EXPECT_NEAR(own("clockwork:look=25"), 10, 0.5);
  EXPECT_NEAR(own("clockwork:cost=1000,sizes=1"), 10, 0.5);
  scenario.candidate_cost_us = 25;
  EXPECT_NEAR(own("clockwork:look=0"), 5, 0.1);
}

// Without this a run of Nexus would quietly drop every request of such a model.
TEST(Planning, RefusesAModelThatNoPlanCanHold) {
  ProfileFile profile;
  profile.models.push_back(AffineModelOf("m", Millis(2), Millis(1), 8));
  Scenario scenario = ScenarioOf(profile, 100, 1);
  scenario.models[0].slo_ms = 3.5;
  EXPECT_TRUE(Simulate(scenario, profile, **MakePolicy("nexus")));
  scenario.jitter_ms = 1;
  scenario.models[0].slo_ms = 3.9;
  const auto refused = Simulate(scenario, profile, **MakePolicy("nexus"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("'m'"));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("3.9 ms"));
}

// A first plan from the stated rates, then one from what came, every epoch.
TEST(Planning, CountsWhatCame) {
  ProfileFile profile;
  for (const char* name : {"a", "b"}) {
    profile.models.push_back(AffineModelOf(name, Millis(2), Millis(1), 8));
  }
  Scenario scenario = ScenarioOf(profile, 800, 10);
  scenario.lanes = 2;
  const auto served_models = MakeServedModels(scenario, profile);
  auto planning = Planning::For("nexus", scenario, **served_models);
  ASSERT_TRUE(planning);
  const auto runs = [](const Plan& plan, ModelId m) {
    return std::count_if(plan.lanes.begin(), plan.lanes.end(), [m](const LanePlan& lane) {
      return std::any_of(lane.entries.begin(), lane.entries.end(),
                         [m](const PlanEntry& entry) { return entry.model == m; });
    });
  };
  EXPECT_EQ(runs(*planning->First(), ModelId{1}), 1);
  for (int i = 0; i < 100; ++i) planning->Count(ModelId{0});
  const auto next = planning->Next(Seconds(1));
  EXPECT_EQ(next->epoch, 2u);
  EXPECT_EQ(runs(*next, ModelId{0}), 2);
  EXPECT_EQ(runs(*next, ModelId{1}), 0) << "nothing came for it";
}

TEST(Planning, ServesAPolicyThatReadsPlans) {
  ProfileFile profile;
  for (const char* name : {"a", "b", "c"}) {
    profile.models.push_back(AffineModelOf(name, Millis(2), Millis(1), 8));
  }
  Scenario scenario = ScenarioOf(profile, 600, 10);
  scenario.lanes = 2;
  const auto policy = MakePolicy("nexus:epoch=500");
  const auto result = Simulate(scenario, profile, **policy);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  const auto met =
      std::count_if(result->records.begin(), result->records.end(),
                    [](const RequestRecord& record) { return record.outcome == Outcome::kMet; });
  EXPECT_GT(static_cast<double>(met), 0.99 * static_cast<double>(result->records.size()));
}

}  // namespace
}  // namespace tactus
