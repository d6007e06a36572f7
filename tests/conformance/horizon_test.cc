// A margin that every latency has (jitter_ms) is for the way to the client, once for each answer.
// Were it counted for every batch that stands before a request, horizon would give requests up that
// the next lane turn answers.
#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

RunReport WithMargin(const std::string& policy, double jitter_ms) {
  Scenario scenario = *LoadScenario(TACTUS_SOURCE_DIR "/scenarios/three-resnets.toml");
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

}  // namespace
}  // namespace tactus
