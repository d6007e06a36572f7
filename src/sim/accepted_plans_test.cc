// What a plan promises is that nobody waits longer than a cycle and a batch. Requests come by
// chance, though: a policy that falls behind by one batch and never recovers would lose a quarter
// of a load for which there is room, where cycle and batch fill the SLO.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/planner.h"
#include "planners/registry.h"
#include "policies/registry.h"
#include "sim/simulation.h"
#include "sim/world/plan_question.h"

namespace tactus {
namespace {

class AcceptedPlans : public ::testing::Test {
 protected:
  AcceptedPlans() {
    const std::string root = TACTUS_SOURCE_DIR;
    scenario_ = *LoadScenario(root + "/scenarios/gpulets/equal.toml");
    profile_ = *LoadProfile(scenario_.profile);
    scenario_.policy = "planned";
    scenario_.plan_shares = {20, 40, 50, 60, 80};
    scenario_.duration_s = 5;
    scenario_.warmup_s = 1;
    const InterferenceModel slowdown{.c = {-0.119, 0.057, 0.456, 0.417, 0.873}};
    planner_ = *MakePlanner("gpulet-retry", slowdown);
  }

  // The part that is late or lost under the plan for these rates, in the order of the scenario's
  // models; nothing where there is no plan that is accepted.
  std::optional<double> Lost(const std::vector<double>& rates) {
    for (std::size_t m = 0; m < rates.size(); ++m) scenario_.models[m].rate_rps = rates[m];
    const auto question = MakePlanQuestion(scenario_, profile_);
    EXPECT_TRUE(question) << question.error().message;
    PlanInput wanted = question->input;
    for (PlannedModel& model : wanted.models) model.rate_rps *= 1 + scenario_.plan_headroom;
    auto plan = planner_->Solve(wanted);
    if (!plan || !Validate(*plan, wanted)) return std::nullopt;
    const auto run = Simulate(scenario_, profile_, **MakePolicy("planned"),
                              {.plan = std::make_shared<const Plan>(*std::move(plan))});
    EXPECT_TRUE(run) << run.error().message;
    return MakeReport(scenario_, profile_, *run).all.bad_ratio;
  }

  Scenario scenario_;
  ProfileFile profile_;
  std::unique_ptr<Planner> planner_;
};

// 24 % before, and 1.4 devices idle.
TEST_F(AcceptedPlans, ARunRecoversWhereCycleAndBatchFillTheSlo) {
  std::vector<double> rates(scenario_.models.size(), 100);
  const auto lenet = std::ranges::find(scenario_.models, "LeNet", &ScenarioModel::name);
  rates[lenet - scenario_.models.begin()] = 9700;
  const auto lost = Lost(rates);
  ASSERT_TRUE(lost);
  EXPECT_LE(*lost, 0.02);
}

// A twelfth of those that are accepted still lose more than 1 %: where a cycle has a few requests,
// their number varies by more than the room that was planned for.
TEST_F(AcceptedPlans, MostRandomLoadsAreCarried) {
  constexpr int kLoads = 200;
  Rng rng = Rng::Stream(1, "accepted plans");
  int accepted = 0;
  int over = 0;
  double worst = 0;
  for (int i = 0; i < kLoads; ++i) {
    std::vector<double> rates;
    for (const ScenarioModel& model : scenario_.models) {
      const double part = rng.Uniform();
      rates.push_back(5 + (model.name == "LeNet" ? 12'000 : 800) * part * part);
    }
    const auto lost = Lost(rates);
    if (!lost) continue;
    ++accepted;
    over += *lost > 0.01 ? 1 : 0;
    worst = std::max(worst, *lost);
  }
  RecordProperty("accepted", accepted);
  RecordProperty("over", over);
  RecordProperty("worst", std::to_string(worst));
  EXPECT_GT(accepted, kLoads / 4);
  EXPECT_LE(over, accepted / 10);
  EXPECT_LE(worst, 0.03);
}

}  // namespace
}  // namespace tactus
