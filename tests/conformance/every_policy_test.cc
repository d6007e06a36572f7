// What every registered policy must do, whatever its idea: serve a light load in time, answer every
// request of an overload, and waste no lane while it can meet deadlines. A new policy is held to it
// without a line here.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

// Three models of 4 + 1 b ms (two exits, the first in half the time) on two lanes: batches of eight
// sustain 1333 requests per second at the final exit.
constexpr double kCapacity = 2 * 8 / 0.012;

ProfileFile Profile() {
  ProfileFile profile;
  profile.provenance = "made up by a test";
  for (const char* name : {"a", "b", "c"}) {
    ProfiledModel model{.name = name, .max_batch = 8};
    for (int e = 1; e <= 2; ++e) {
      ProfiledExit exit{.name = std::to_string(e), .accuracy = 0.4 * e};
      for (int b = 1; b <= model.max_batch; ++b) {
        const double ms = 0.5 * e * (4 + b);
        exit.cells.push_back({0, ms, ms, ms, ms, ms, ms, 0});
      }
      model.exits.push_back(exit);
    }
    profile.models.push_back(model);
  }
  return profile;
}

Scenario MakeScenario(const std::string& policy_name, double rate_rps, const std::string& expiry) {
  Scenario scenario;
  scenario.name = "every policy";
  scenario.policy = policy_name;
  scenario.expiry = expiry;
  scenario.rate_rps = rate_rps;
  scenario.duration_s = 10;
  scenario.warmup_s = 1;
  scenario.lanes = 2;
  for (const char* name : {"a", "b", "c"}) {
    scenario.models.push_back({.name = name, .profile_as = name, .slo_ms = 60});
  }
  return scenario;
}

RunReport Play(const Scenario& scenario) {
  const ProfileFile profile = Profile();
  const auto policy = MakePolicy(scenario.policy);
  EXPECT_TRUE(policy) << policy.error().message;
  const auto result = Simulate(scenario, profile, **policy);
  EXPECT_TRUE(result) << result.error().message;
  return MakeReport(scenario, profile, *result);
}

TEST(EveryPolicy, ServesALightLoadInTime) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    const RunReport report = Play(MakeScenario(info.name, 0.05 * kCapacity, "never"));
    EXPECT_GT(report.all.requests, 500);
    EXPECT_LE(report.all.bad_ratio, 0.01);
  }
}

// Lanes that differ: whoever takes them for alike must say so rather than miss deadlines.
TEST(EveryPolicy, ServesALightLoadOnLanesThatDifferOrRefusesThem) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    Scenario scenario = MakeScenario(info.name, 0.05 * kCapacity, "never");
    scenario.lane_kinds = {{.name = "slow", .count = 1, .speed = 0.4},
                           {.name = "fast", .count = 1, .speed = 2}};
    const auto policy = MakePolicy(info.name);
    const auto result = Simulate(scenario, Profile(), **policy);
    if ((*policy)->traits().planner.empty()) {
      const RunReport report = Play(scenario);
      EXPECT_LE(report.all.bad_ratio, 0.01);
      EXPECT_GT(report.lanes[0].batches, 0);
      EXPECT_EQ(report.lanes[0].kind, "fast");
    } else {
      ASSERT_FALSE(result);
      EXPECT_NE(result.error().message.find("these are of 2 kinds"), std::string::npos);
    }
  }
}

// What a dispatcher is told to launch, beside what its lanes may run.
class Placed final : public Journal {
 public:
  explicit Placed(std::vector<LaneSpec> lanes) : lanes_(std::move(lanes)) {}
  void Append(const JournalRecord& record) noexcept override {
    if (record.kind != JournalRecord::Kind::kDispatch) return;
    ++launched[record.lane];
    misplaced += !lanes_[record.lane].serves.contains(ModelId{record.model});
  }
  std::map<std::uint32_t, int> launched;  // by lane
  int misplaced = 0;

 private:
  const std::vector<LaneSpec> lanes_;
};

// Lanes of three kinds, quick to slow: 0 for a, 1 for a and b, 2 and 3 for b and c.
Scenario Pinned(const std::string& policy_name, double rate_rps, const std::string& expiry) {
  Scenario scenario = MakeScenario(policy_name, rate_rps, expiry);
  scenario.lanes = 4;
  scenario.lane_kinds = {{.name = "slow", .count = 2, .speed = 0.7, .models = {"b", "c"}},
                         {.name = "fast", .count = 1, .speed = 2, .models = {"a"}},
                         {.name = "shared", .count = 1, .speed = 1, .models = {"a", "b"}}};
  return scenario;
}

// A policy that took lanes for alike would run a model where it is not, or leave a lane idle whose
// models wait.
TEST(EveryPolicy, ServesModelsWhereTheyAreAndNowhereElse) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    const Scenario light = Pinned(info.name, 0.05 * kCapacity, "never");
    Placed placed(MakeLanes(light));
    const auto result = Simulate(light, Profile(), **MakePolicy(info.name), {.journal = &placed});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(placed.misplaced, 0);
    const RunReport report = MakeReport(light, Profile(), *result);
    EXPECT_LE(report.all.bad_ratio, 0.01);

    const Scenario heavy = Pinned(info.name, 5 * kCapacity, "unmeetable");
    Placed busy(MakeLanes(heavy));
    const auto overload = Simulate(heavy, Profile(), **MakePolicy(info.name), {.journal = &busy});
    ASSERT_TRUE(overload) << overload.error().message;
    EXPECT_EQ(busy.misplaced, 0);
    std::int64_t ended = 0;
    const RunReport figures = MakeReport(heavy, Profile(), *overload);
    for (const std::int64_t count : figures.all.outcomes) ended += count;
    EXPECT_EQ(ended, figures.all.requests);
    // No lane may starve beside models that wait for it.
    for (std::size_t lane = 0; lane < figures.lanes.size(); ++lane) {
      EXPECT_GE(figures.lanes[lane].busy_ratio, 0.8) << "lane " << lane;
    }
  }
}

// Lane 1 dies with a batch under way and comes back; meanwhile b and c have slow lanes alone, and a
// has the fast one. Requests that a policy left with the dead lane would all be late.
TEST(EveryPolicy, LosesNothingWithALaneAndTakesItBack) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    Scenario scenario = Pinned(info.name, 0.2 * kCapacity, "never");
    scenario.lane_faults = {{.lane = 1, .at_s = 3, .back_s = 6},
                            {.lane = 0, .at_s = 7, .back_s = 8}};
    Placed placed(MakeLanes(scenario));
    const auto result =
        Simulate(scenario, Profile(), **MakePolicy(info.name), {.journal = &placed});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(placed.misplaced, 0);
    const RunReport report = MakeReport(scenario, Profile(), *result);
    EXPECT_DOUBLE_EQ(report.lanes[1].open_ratio,
                     1 - 3 / ToSeconds(std::max(result->last, result->end) - kStart));
    std::int64_t ended = 0;
    for (const std::int64_t count : report.all.outcomes) ended += count;
    EXPECT_EQ(ended, report.all.requests);
    EXPECT_EQ(report.all.outcomes[static_cast<int>(Outcome::kError)], 0);
    EXPECT_LE(report.all.bad_ratio, 0.05);
  }
}

// 13 pipeline requests a second, of four stages of which two are branches.
Scenario PipelineOf(const std::string& policy_name) {
  Scenario scenario = MakeScenario(policy_name, 0.05 * kCapacity, "never");
  for (ScenarioModel& model : scenario.models) model.slo_ms = ScenarioModel{}.slo_ms;
  scenario.pipelines = {{.name = "p",
                         .slo_ms = 120,
                         .stages = {{.name = "first", .model = "a"},
                                    {.name = "left", .model = "b", .after = {"first"}, .count = 2},
                                    {.name = "right", .model = "c", .after = {"first"}},
                                    {.name = "last", .model = "a", .after = {"left", "right"}}}}};
  return scenario;
}

// A stage's requests have deadlines of their own, not their model's SLO: who counts on that would
// drop them, or stay asleep when a stage starts.
TEST(EveryPolicy, ServesThePipelinesOfALightLoadInTime) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    const RunReport report = Play(PipelineOf(info.name));
    EXPECT_GT(report.pipelines[0].requests(), 100);
    // Symphony's 5.4 %: the next test.
    EXPECT_LE(report.pipelines[0].bad_ratio, info.name.starts_with("symphony") ? 0.1 : 0.01);
  }
}

// What deferring costs pipelines is a want of lanes at one instant, and not how the SLO is divided:
// if it came from the deadlines, neither a lead nor a lane more would mend it. A deferred batch has
// cost(b + 1) - cost(b), 1 ms here, to find a free lane, and branches of a request, which have one
// deadline, fall due together and take both lanes for all of their time.
TEST(SymphonyWithPipelines, LosesAtTheLastMomentWhatALeadOrALaneMoreSaves) {
  const auto bad_ratio = [](const std::string& policy, int lanes) {
    Scenario scenario = PipelineOf(policy);
    scenario.lanes = lanes;
    scenario.duration_s = 100;
    return Play(scenario).pipelines[0].bad_ratio;
  };
  EXPECT_GT(bad_ratio("symphony:gather=prefix,lead=0", 2), 0.03);
  EXPECT_LE(bad_ratio("symphony:gather=prefix,lead=0.1", 2), 0.01);
  EXPECT_EQ(bad_ratio("symphony:gather=prefix,lead=0.2", 2), 0);
  EXPECT_EQ(bad_ratio("symphony:gather=prefix,lead=0", 3), 0);
  // The same models, their requests one by one, hardly ever meet.
  Scenario single = MakeScenario("symphony", 0.05 * kCapacity, "never");
  single.duration_s = 100;
  EXPECT_LE(Play(single).all.bad_ratio, 0.002);
}

TEST(EveryPolicy, AnswersAllOfAnOverloadAndServesOn) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    const RunReport report = Play(MakeScenario(info.name, 3 * kCapacity, "unmeetable"));
    std::int64_t ended = 0;
    for (const std::int64_t count : report.all.outcomes) ended += count;
    EXPECT_EQ(ended, report.all.requests);
    // Half of what singles would do: nobody may live on refusals.
    EXPECT_GE(report.all.goodput_rps, 0.5 * 2 / 0.005);
  }
}

}  // namespace
}  // namespace tactus
