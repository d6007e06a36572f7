// What the default policy promises, in whole runs. A margin that every latency has (jitter_ms) is
// for the way to the client, once for each answer. Were it counted for every batch that stands
// before a request, horizon would give requests up that the next lane turn answers.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "policies/registry.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

RunReport WithMargin(const std::string& policy, double jitter_ms) {
  Scenario scenario = *LoadScenario(SourcePath("scenarios/three-resnets.toml"));
  scenario.policy = policy;
  scenario.rate_rps = 1000;  // full depth is 800
  scenario.duration_s = 10;
  scenario.jitter_ms = jitter_ms;
  const auto profile = LoadProfile(scenario.profile);
  auto made = MakePolicy(policy);
  const auto result = Simulate(scenario, *profile, **made);
  EXPECT_TRUE(result) << result.error().message;
  return MakeReport(scenario, *profile, *result);
}

TEST(HorizonConformance, CountsAMarginOnceForEachAnswer) {
  for (const double jitter : {6.0, 15.0, 20.0}) {
    const RunReport own = WithMargin("horizon", jitter);
    EXPECT_LE(own.all.bad_ratio, 0.001) << jitter << " ms";
    const RunReport published = WithMargin("edgeserving", jitter);
    EXPECT_GE(own.all.accuracy, published.all.accuracy) << jitter << " ms";
  }
}

// A client that floods one model, and one that asks another for a little: without shares the second
// loses more than the first, whose requests are cheaper in their large batches.
RunReport Flooded(bool exits, double flood_rps, double calm_rps, int lanes, int calm_priority = 1) {
  Scenario scenario;
  scenario.name = "flood";
  scenario.profile = SourcePath("scenarios/profiles/edgeserving-standin.json");
  scenario.policy = "horizon";
  scenario.duration_s = 10;
  scenario.warmup_s = 2;
  scenario.lanes = lanes;
  for (const auto& [name, rate] : {std::pair("flood", flood_rps), std::pair("calm", calm_rps)}) {
    ScenarioModel model;
    model.name = name;
    model.profile_as = "ResNet50";
    if (!exits) model.exits = {"final"};
    model.slo_ms = 50;
    model.rate_rps = rate;
    scenario.models.push_back(model);
  }
  scenario.models[1].priority = calm_priority;
  const auto profile = LoadProfile(scenario.profile);
  auto made = MakePolicy(scenario.policy);
  const auto result = Simulate(scenario, *profile, **made);
  EXPECT_TRUE(result) << result.error().message;
  return MakeReport(scenario, *profile, *result);
}

TEST(HorizonConformance, AFloodOfOneModelLeavesTheOthersTheirShare) {
  for (const bool exits : {false, true}) {
    for (const int lanes : {1, 4}) {
      SCOPED_TRACE(std::to_string(lanes) + (exits ? " lanes, exits" : " lanes"));
      const double full = lanes * (exits ? 5000.0 : 1500.0);
      const RunReport report = Flooded(exits, 2 * full, 20 * lanes, lanes);
      EXPECT_LE(report.models[1].figures.bad_ratio, 0.01) << "of whoever asks for little";
      EXPECT_LE(report.models[0].figures.bad_ratio, 0.65) << "the rest of the lanes is the flood's";
    }
  }
}

TEST(HorizonConformance, PrioritiesComeBeforeShares) {
  // The calm model has the lower priority: it is left out first, flood or not.
  const RunReport report = Flooded(true, 10'000, 20, 1, 2);
  EXPECT_GE(report.models[1].figures.bad_ratio, report.models[0].figures.bad_ratio);
}

}  // namespace
}  // namespace tactus
