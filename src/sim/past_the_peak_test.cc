// Past what can be sustained, work on what is lost later is the whole loss: on each of the four
// pipelines of scenarios/pipelines the rule `spare` must have more on time than its rivals have.
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "policies/registry.h"
#include "sim/search/peak_goodput.h"
#include "sim/simulation.h"
#include "workload/scenario.h"

namespace tactus {
namespace {

constexpr int kSeeds = 3;

// Requests in time, of all seeds; where rows are answered alone, rows.
std::int64_t OnTime(const std::string& name, const std::string& rule, double rate) {
  auto scenario = LoadScenario(SourcePath("scenarios/pipelines/" + name + ".toml"));
  const auto profile = LoadProfile(SourcePath("scenarios/profiles/gpulets-standin-2080ti.json"));
  EXPECT_TRUE(scenario && profile) << name;
  scenario->duration_s = 20;
  scenario->pipelines[0].deadlines = rule;
  SetTotalRate(*scenario, rate);
  std::int64_t on_time = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    scenario->seed = static_cast<std::uint64_t>(seed);
    const auto result = Simulate(*scenario, *profile, **MakePolicy(scenario->policy));
    EXPECT_TRUE(result) << name << ": " << result.error().message;
    for (const PipelineRecord& record : result->pipeline_requests) {
      const bool by_row = scenario->pipelines[0].answer == "each";
      const int in_time = by_row ? record.items - record.items_lost : 1;
      if (record.outcome == PipelineOutcome::kOnTime) on_time += in_time;
    }
  }
  return on_time;
}

// 1.2 times the highest rate at which any rule keeps 99 % on time under the scenario's policy
// (docs/reference/pipelines.md).
TEST(PastThePeak, SpareHasMoreOnTimeThanEqualSplitAndTheWholeTimeout) {
  for (const auto& [name, rate] : std::map<std::string, double>{
           {"chain", 2110}, {"diamond", 2290}, {"text", 3460}, {"crowd", 1510}}) {
    SCOPED_TRACE(name);
    const std::int64_t ours = OnTime(name, "spare", rate);
    EXPECT_GE(100 * ours, 115 * OnTime(name, "equal", rate));
    EXPECT_GE(100 * ours, 150 * OnTime(name, "whole", rate));
    // What is refused for nothing would show below the peak.
    const double light = 0.6 * rate;
    EXPECT_GE(100 * OnTime(name, "spare", light), 99 * OnTime(name, "latency", light));
  }
}

}  // namespace
}  // namespace tactus
