// What a plan promises is that nobody waits longer than a cycle and a batch. Requests come by
// chance, though: without core/chance.h plans would be accepted with violations of up to a quarter
// of a load for which there is room, where cycle and batch fill the SLO, or where a cycle has a few
// requests.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "base/rng.h"
#include "base/source_path_for_test.h"
#include "core/chance.h"
#include "core/planner.h"
#include "planners/registry.h"
#include "policies/registry.h"
#include "sim/simulation.h"
#include "sim/world/plan_question.h"

namespace tactus {
namespace {

constexpr InterferenceModel kSlowdown{.c = {-0.119, 0.057, 0.456, 0.417, 0.873}};

class AcceptedPlans : public ::testing::Test {
 protected:
  AcceptedPlans() {
    const std::string root = kSourceDir;
    scenario_ = *LoadScenario(root + "/scenarios/gpulets/equal.toml");
    profile_ = *LoadProfile(scenario_.profile);
    scenario_.plan_shares = {20, 40, 50, 60, 80};
    scenario_.duration_s = 10;
    scenario_.warmup_s = 1;
    question_.emplace(*MakePlanQuestion(scenario_, profile_));
  }

  PlanInput Wanted(const std::vector<double>& rates) const {
    PlanInput wanted = question_->input;
    for (std::size_t m = 0; m < rates.size(); ++m) {
      wanted.models[m].expected_rps = rates[m];
      wanted.models[m].rate_rps = rates[m] * (1 + scenario_.plan_headroom);
    }
    return wanted;
  }
  RunReport Run(const std::vector<double>& rates, const Plan& plan) {
    scenario_.rate_rps = 0;
    for (std::size_t m = 0; m < rates.size(); ++m) scenario_.models[m].rate_rps = rates[m];
    const auto run = Simulate(scenario_, profile_, **MakePolicy("planned"),
                              {.plan = std::make_shared<const Plan>(plan)});
    EXPECT_TRUE(run) << run.error().message;
    return MakeReport(scenario_, profile_, *run);
  }
  // Mostly few requests, of LeNet up to a device full.
  std::vector<double> RandomRates(Rng& rng) const {
    std::vector<double> rates;
    for (const ScenarioModel& model : scenario_.models) {
      const double part = rng.Uniform();
      rates.push_back(5 + (model.name == "LeNet" ? 12'000 : 800) * part * part);
    }
    return rates;
  }

  Scenario scenario_;
  ProfileFile profile_;
  std::optional<PlanQuestion> question_;
};

// 24 % once, and 1.6 % of LeNet with a policy that recovers, while 1.4 devices idle.
TEST_F(AcceptedPlans, IdleDevicesHelpWhereCycleAndBatchFillTheSlo) {
  std::vector<double> rates(scenario_.models.size(), 100);
  const auto lenet = std::ranges::find(scenario_.models, "LeNet", &ScenarioModel::name);
  rates[lenet - scenario_.models.begin()] = 9700;
  const PlanInput wanted = Wanted(rates);
  const auto plan = (*MakePlanner("gpulet-retry", kSlowdown))->Solve(wanted);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(Validate(*plan, wanted)) << Validate(*plan, wanted).error().message;
  EXPECT_LE(Run(rates, *plan).all.bad_ratio, 0.01);
}

// Planned as if requests came evenly, four of the 33 that have a plan have 1.6 to 1.7 % violations.
// `./run bench accepted` plans more.
TEST_F(AcceptedPlans, RandomLoadsLoseAtMostOnePercent) {
  constexpr int kLoads = CasesHere(40);
  Rng rng = Rng::Stream(1, "accepted plans");
  const auto planner = *MakePlanner("gpulet-retry", kSlowdown);
  int accepted = 0;
  for (int i = 0; i < kLoads; ++i) {
    const std::vector<double> rates = RandomRates(rng);
    const PlanInput wanted = Wanted(rates);
    const auto plan = planner->Solve(wanted);
    if (!plan) continue;
    EXPECT_TRUE(Validate(*plan, wanted)) << "load " << i;
    ++accepted;
    EXPECT_LE(Run(rates, *plan).all.bad_ratio, 0.01) << "load " << i;
  }
  RecordProperty("accepted", accepted);
  EXPECT_GE(accepted, kLoads / 4);
}

// The lanes of core/chance.h run as those of the policy do: a run has the violations that it
// foretells, of the paper's own plans, where nobody knew of chance.
TEST_F(AcceptedPlans, TheViolationsForetoldComeTrue) {
  constexpr int kLoads = CasesHere(40);
  scenario_.capacity.clear();  // lanes do not slow each other
  scenario_.duration_s = 60;
  Rng rng = Rng::Stream(2, "accepted plans");
  const auto planner = *MakePlanner("gpulet", std::nullopt);
  int much = 0;
  for (int i = 0; i < kLoads; ++i) {
    const std::vector<double> rates = RandomRates(rng);
    const PlanInput wanted = Wanted(rates);
    const auto plan = planner->Solve(wanted);
    if (!plan) continue;
    const auto violations = ViolationsByChance(*plan, wanted).models;
    const RunReport report = Run(rates, *plan);
    for (std::size_t m = 0; m < rates.size(); ++m) {
      if (rates[m] < 30) continue;  // too few to tell
      const double bad = report.models[m].figures.bad_ratio;
      EXPECT_NEAR(violations[m].ratio, bad, 0.005 + 0.25 * bad)
          << "load " << i << ", " << wanted.models[m].name;
      much += bad > 0.01 ? 1 : 0;
    }
  }
  EXPECT_GE(much, kLoads / 13) << "no violations, so nothing was seen";
}

}  // namespace
}  // namespace tactus
