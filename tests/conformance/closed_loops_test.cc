// Callers that wait for their answers before they call again: as many clients, worker threads and
// cameras do. Nobody comes to join a batch while all of them wait, and a lane that waits for
// company costs each of them as much as its answer does.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "policies/registry.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

SimulationResult Play(Scenario scenario, const std::string& policy) {
  scenario.policy = policy;
  const auto profile = LoadProfile(scenario.profile);
  EXPECT_TRUE(profile) << profile.error().message;
  auto made = MakePolicy(policy);
  EXPECT_TRUE(made) << policy;
  auto result = Simulate(scenario, *profile, **made);
  EXPECT_TRUE(result) << policy << ": " << result.error().message;
  return *std::move(result);
}

Scenario Plain(int callers, const std::vector<std::string>& models) {
  Scenario scenario;
  scenario.name = "closed";
  scenario.profile = SourcePath("scenarios/profiles/gpulets-standin-2080ti.json");
  scenario.process = ArrivalProcess::kClosed;
  scenario.callers = callers;
  scenario.think_ms = 1;
  scenario.duration_s = 4;
  scenario.lanes = 2;
  for (const std::string& name : models) {
    scenario.models.push_back({.name = name, .profile_as = name, .slo_ms = 150});
  }
  return scenario;
}

// The most of a model's requests that were under way at once.
int MostUnderway(const std::vector<RequestRecord>& records, std::uint32_t model) {
  std::vector<std::pair<TimePoint, int>> changes;
  for (const RequestRecord& record : records) {
    if (record.model != model) continue;
    changes.emplace_back(record.arrival, 1);
    changes.emplace_back(record.ended, -1);
  }
  std::ranges::sort(changes);  // at one instant, ends first
  int most = 0, underway = 0;
  for (const auto& [at, change] : changes) most = std::max(most, underway += change);
  return most;
}

TEST(ClosedLoops, NoPolicyHasMoreUnderWayThanThereAreCallers) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    for (const int callers : {1, 9}) {
      const SimulationResult result =
          Play(Plain(callers, {"SSD-MobileNet", "GoogLeNet", "LeNet"}), info.name);
      for (std::uint32_t m = 0; m < 3; ++m) {
        EXPECT_LE(MostUnderway(result.records, m), callers);
        EXPECT_GE(MostUnderway(result.records, m), 1);
      }
    }
  }
}

// Of those that came after two seconds, when horizon has learned who its callers are.
std::map<std::string, std::int64_t> InTime(const Scenario& scenario,
                                           const std::vector<std::string>& policies) {
  std::map<std::string, std::int64_t> in_time;
  for (const std::string& policy : policies) {
    const SimulationResult result = Play(scenario, policy);
    const auto counts = [](TimePoint arrival) { return arrival >= kStart + Seconds(2); };
    std::int64_t& count = in_time[policy];
    for (const RequestRecord& record : result.records) {
      if (!scenario.pipelines.empty() || !counts(record.arrival)) continue;
      count += record.outcome == Outcome::kMet ? 1 : 0;
    }
    for (const PipelineRecord& record : result.pipeline_requests) {
      if (!counts(record.arrival)) continue;
      count += record.outcome == PipelineOutcome::kOnTime ? 1 : 0;
    }
  }
  return in_time;
}

std::int64_t Best(const std::map<std::string, std::int64_t>& in_time) {
  std::int64_t best = 0;
  for (const auto& [policy, count] : in_time) best = std::max(best, count);
  return best;
}

const std::vector<std::string> kPolicies = {"horizon", "fifo", "clockwork", "early-exit-edf"};

TEST(ClosedLoops, HorizonLetsNobodyWaitForCompanyThatCannotCome) {
  for (const int lanes : {2, 8}) {
    for (const int callers : {1, 2, 4}) {
      Scenario scenario = Plain(callers, {"GoogLeNet"});
      scenario.lanes = lanes;
      auto in_time = InTime(scenario, kPolicies);
      EXPECT_GE(100 * in_time["horizon"], 95 * Best(in_time))
          << callers << " callers, " << lanes << " lanes";
    }
  }
}

TEST(ClosedLoops, HorizonServesPipelinesAsTheBestDoesFromOneCallerToMany) {
  for (const char* name : {"chain", "text"}) {
    auto scenario = LoadScenario(SourcePath(std::string("scenarios/pipelines/") + name + ".toml"));
    ASSERT_TRUE(scenario) << scenario.error().message;
    scenario->pipelines[0].deadlines = "spare";
    scenario->process = ArrivalProcess::kClosed;
    scenario->think_ms = 2;
    scenario->duration_s = 8;
    scenario->warmup_s = 0;
    for (const int callers : {1, 4, 16, 64, 256}) {
      scenario->callers = callers;
      auto in_time = InTime(*scenario, kPolicies);
      EXPECT_GE(100 * in_time["horizon"], 85 * Best(in_time)) << name << ", " << callers;
    }
  }
}

}  // namespace
}  // namespace tactus
