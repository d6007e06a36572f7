// Lanes of several kinds: who gets the fast ones.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

// Both models take 8 + 1 b ms on a plain lane; `tight` has no time for that.
ProfileFile TightAndLoose() {
  ProfileFile profile;
  profile.provenance = "made up by a test";
  for (const char* name : {"tight", "loose"}) {
    profile.models.push_back(AffineModelOf(name, Millis(8), Millis(1), 8));
  }
  return profile;
}

struct Played {
  RunReport report;
  double slow = 0;  // part of the loose requests that ran on plain lanes
};

Played Play(const std::string& policy_text) {
  Scenario scenario = ScenarioOf(TightAndLoose(), 300, 20);
  scenario.policy = policy_text;
  scenario.seed = 5;
  scenario.warmup_s = 1;
  scenario.lanes = 4;
  scenario.lane_kinds = {{.name = "fast", .count = 2, .speed = 4}};
  scenario.models[0].slo_ms = 8;
  scenario.models[1].slo_ms = 60;
  const auto policy = MakePolicy(policy_text);
  EXPECT_TRUE(policy) << policy.error().message;
  const auto result = Simulate(scenario, TightAndLoose(), **policy);
  EXPECT_TRUE(result) << result.error().message;
  Played played{MakeReport(scenario, TightAndLoose(), *result)};
  double loose = 0;
  for (const RequestRecord& record : result->records) {
    const bool plain = record.batch > 0 && record.ended - record.started > Millis(4);
    EXPECT_TRUE(record.model == 1 || !plain) << "a tight request on a plain lane";
    loose += record.model;
    played.slow += plain ? 1 : 0;
  }
  played.slow /= loose;
  return played;
}

// Symphony's candidate for the plain lanes is due before that for the fast ones, so loose requests
// leave the fast lanes to the tight ones, which have no other. An eager policy fills the fast
// first.
TEST(LaneKinds, SymphonyKeepsTheFastOnesForWhoNeedsThem) {
  const Played deferred = Play("symphony:gather=prefix,lead=0");
  const Played eager = Play("clockwork");
  for (const RunReport& run : {deferred.report, eager.report}) {
    EXPECT_LE(run.models[0].figures.bad_ratio, 0.01) << run.policy;
    EXPECT_LE(run.models[1].figures.bad_ratio, 0.01) << run.policy;
    EXPECT_EQ(run.lanes[0].kind, "fast");
    EXPECT_EQ(run.lanes[2].kind, "plain");
  }
  EXPECT_GT(deferred.slow, 0.8);
  EXPECT_LT(eager.slow, 0.4);
}

// A lane that dies in mid-batch: its requests run elsewhere, or wait for it, the most urgent first.
// Without this what it ran would be lost, late for ever, or run twice.
TEST(LaneFaults, WhatADeadLaneRanIsServedByTheOthersOrWhenItIsBack) {
  ProfileFile profile;
  profile.models.push_back(AffineModelOf("m", Millis(90), Millis(10), 4));
  Scenario scenario = ScenarioOf(profile, 10, 10);
  scenario.process = ArrivalProcess::kUniform;
  scenario.models[0].slo_ms = 500;
  scenario.lane_faults = {{.lane = 0, .at_s = 5.05, .back_s = 7}};
  struct Lost final : Journal {
    void Append(const JournalRecord& record) noexcept override {
      lost += record.kind == JournalRecord::Kind::kFinish &&
              record.detail == static_cast<std::uint8_t>(BatchStatus::kLost);
    }
    int lost = 0;
  };
  for (const int lanes : {1, 2}) {
    scenario.lanes = lanes;
    Lost journal;
    FifoPolicy policy(4);
    const auto result = Simulate(scenario, profile, policy, {.journal = &journal});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(journal.lost, 1);
    EXPECT_EQ(result->lanes[0].closed, FromSeconds(1.95));
    std::set<TimePoint> arrivals;
    for (const RequestRecord& record : result->records) {
      EXPECT_TRUE(arrivals.insert(record.arrival).second) << "answered twice";
      EXPECT_GT(record.batch, 0u);
      // Nothing ran there meanwhile.
      const bool away =
          record.started > kStart + FromSeconds(5.05) && record.started < kStart + Seconds(7);
      EXPECT_FALSE(lanes == 1 && away);
    }
    EXPECT_NEAR(static_cast<double>(arrivals.size()), 100, 1);
  }
}

}  // namespace
}  // namespace tactus
