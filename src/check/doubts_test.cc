// Without this, a run could be odd in a way that was known before it began, and nobody would say
// so.
#include "check/doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/serving_time.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

// One model whose batches of one and two take so long.
ProfileFile Profiled(double one_ms, double two_ms) {
  ProfiledModel model{.name = "m", .max_batch = 2};
  ProfiledExit& exit = model.exits.emplace_back();
  exit.name = "final";
  for (const double ms : {one_ms, two_ms}) {
    exit.cells.push_back(
        {.mean_ms = ms, .min_ms = ms, .p50_ms = ms, .p95_ms = ms, .p99_ms = ms, .max_ms = ms});
  }
  return {.models = {model}};
}

Scenario Served() {
  Scenario scenario;
  scenario.name = "test";
  scenario.models.push_back({.name = "m", .profile_as = "m", .slo_ms = 50});
  return scenario;
}

TEST(ScenarioDoubts, SpeakOfLatenciesThatFallAndOfLanesThatAreTooSlow) {
  EXPECT_EQ(ScenarioDoubts(Served(), Profiled(10, 12)), "");
  EXPECT_THAT(ScenarioDoubts(Served(), Profiled(12, 10)), HasSubstr("profile, doubtful: "));
  Scenario slow = Served();
  slow.lanes = 2;
  slow.lane_kinds = {{.name = "old", .count = 1, .speed = 0.1}};
  EXPECT_THAT(ScenarioDoubts(slow, Profiled(10, 12)), HasSubstr("lanes, doubtful: 1 old, model"));
}

TEST(ScenarioDoubts, SpeakOfWhatBatchesUseOnlyWhereTheyShareALane) {
  Scenario scenario = Served();
  EXPECT_EQ(ScenarioDoubts(scenario, Profiled(10, 12)), "");
  scenario.slots = 2;
  EXPECT_THAT(ScenarioDoubts(scenario, Profiled(10, 12)), HasSubstr("profile, doubtful: "));
}

TEST(PolicyDoubts, SpeakOfWhatThePolicyCannotUse) {
  const ServedModels nothing;
  Scenario scenario = Served();
  EXPECT_EQ(PolicyDoubts({.name = "plain"}, scenario, nothing, {}), "");
  EXPECT_THAT(PolicyDoubts({.name = "stops", .suspends = true}, scenario, nothing, {}),
              HasSubstr("stops stops batches only on devices"));
  scenario.capacity = {1, 1, 1, 1, 1};
  EXPECT_EQ(PolicyDoubts({.name = "stops", .suspends = true}, scenario, nothing, {}), "");
  scenario.plan_planner = "gpulet";
  EXPECT_THAT(PolicyDoubts({.name = "plain"}, scenario, nothing, {}),
              HasSubstr("plain reads no plan"));
  EXPECT_EQ(PolicyDoubts({.name = "planned", .planner = "nexus"}, scenario, nothing, {}), "");
}

TEST(MemoryDoubt, NamesModelsOfUnknownMemoryWhereItIsLimited) {
  ProfileFile profile = Profiled(10, 12);
  Scenario scenario = Served();
  EXPECT_FALSE(MemoryDoubt(scenario, profile));
  scenario.plan_memory_mb = 100;
  EXPECT_THAT(MemoryDoubt(scenario, profile).value_or(""), HasSubstr("what memory 'm' needs"));
  profile.models[0].weight_bytes = 1000;
  EXPECT_FALSE(MemoryDoubt(scenario, profile));
}

TEST(CoresDoubt, IsOfMoreBatchesThanCores) {
  EXPECT_FALSE(CoresDoubt(4, 4));
  EXPECT_THAT(CoresDoubt(5, 4).value_or(""), HasSubstr("need 5 cores, and there are 4"));
}

TEST(SharesDoubt, IsOfAShareWithoutItsComplement) {
  const ProfileFile none;
  EXPECT_FALSE(SharesDoubt(std::vector<ShareProfile>{{0.5, none}, {1, none}}));
  EXPECT_THAT(SharesDoubt(std::vector<ShareProfile>{{0.3, none}, {1, none}}).value_or(""),
              HasSubstr("--on-share: "));
}

}  // namespace
}  // namespace tactus
