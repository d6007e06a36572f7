// Plans in the simulator: a fixed one on shares of devices, and layouts that change under load.
// Without these a lane of a small share could be as quick as a whole device, lanes of one device
// could not feel each other, or a request could be lost while its lane goes.
#include "sim/world/plan_executor.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "policies/registry.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

// Batches that can use all of a device, so that half of one takes them twice as long.
ProfileFile Profile(std::initializer_list<const char*> names, double dram = 0.1) {
  ProfileFile profile;
  for (const char* name : names) {
    ProfiledModel model = AffineModelOf(name, Millis(2), Millis(1), 8);
    model.resources_source = "made up by a test";
    for (ProfileCell& cell : model.exits[0].cells) {
      cell.throughput[static_cast<std::size_t>(Resource::kFma)] = 0.5;
      cell.throughput[static_cast<std::size_t>(Resource::kDram)] = dram;
    }
    profile.models.push_back(model);
  }
  return profile;
}

Scenario InShares(const ProfileFile& profile, double rate_rps, double seconds) {
  Scenario scenario = ScenarioOf(profile, rate_rps, seconds);
  scenario.policy = "planned";
  scenario.plan_shares = {50};
  return scenario;
}

// Each model alone on half of device 0.
std::shared_ptr<const Plan> Halves(std::size_t models) {
  auto plan = std::make_shared<Plan>();
  for (ModelId::rep m = 0; m < models; ++m) {
    plan->lanes.push_back({.spec = {.device = DeviceId{0}, .fraction = 0.5},
                           .cycle = Millis(12),
                           .entries = {{.model = ModelId{m}, .batch = 4}}});
  }
  return plan;
}

double MeanLatencyMs(const SimulationResult& result) {
  double sum = 0;
  for (const RequestRecord& r : result.records) sum += ToMillis(r.ended - r.started);
  return sum / static_cast<double>(result.records.size());
}

TEST(PlanInSimulation, BatchesTakeLongerOnAShare) {
  const ProfileFile profile = Profile({"a"});
  const Scenario scenario = InShares(profile, 10, 20);
  const auto whole = Simulate(scenario, profile, **MakePolicy("planned"));
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_NEAR(MeanLatencyMs(*whole), 3, 0.1);
  EXPECT_EQ(whole->lanes.size(), 1u);
  const auto half = Simulate(scenario, profile, **MakePolicy("planned"), {.plan = Halves(1)});
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_NEAR(MeanLatencyMs(*half), 6, 0.2);
  EXPECT_EQ(half->lanes[0].kind, "of 50 %");
}

// What was measured on a share counts there, not the stand-in.
TEST(PlanInSimulation, BatchesTakeWhatWasMeasuredOnAShare) {
  const ProfileFile profile = Profile({"a"});
  Scenario scenario = InShares(profile, 10, 20);
  const std::vector<ShareProfile> on_share = {{.share = 0.5, .profile = profile},
                                              {.share = 1, .profile = profile}};
  const auto half = Simulate(scenario, profile, **MakePolicy("planned"),
                             {.plan = Halves(1), .on_share = on_share});
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_NEAR(MeanLatencyMs(*half), 3, 0.1) << "half of the device costs it nothing";
  scenario.lanes = 2;
  scenario.lane_kinds = {{.name = "fast", .count = 1, .speed = 2}};
  const auto mixed = Simulate(scenario, profile, **MakePolicy("planned"), {.on_share = on_share});
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message, HasSubstr("leave out [[lane_kinds]]"));
}

// The physics of contention is that of a device, not of a lane.
TEST(PlanInSimulation, LanesOfADeviceSlowEachOtherWhereTheScenarioAsks) {
  const ProfileFile profile = Profile({"a", "b"}, 0.9);
  Scenario scenario = InShares(profile, 100, 20);
  const auto latency = [&](std::size_t models, double dram) {
    scenario.capacity = {1, 1, dram, 1, 1};
    scenario.crosstalk = 0;
    scenario.tail = 0;
    auto plan = std::make_shared<Plan>(*Halves(2));
    if (models == 2) plan->lanes[1].spec.device = DeviceId{1};
    scenario.lanes = 2;
    const auto result = Simulate(scenario, profile, **MakePolicy("planned"), {.plan = plan});
    EXPECT_TRUE(result);
    return MeanLatencyMs(*result);
  };
  const double apart = latency(2, 0.5);
  EXPECT_GT(latency(1, 0.5), 1.05 * apart) << "0.45 each, of 0.5, together";
  EXPECT_NEAR(latency(1, 1), apart, 0.01 * apart) << "enough for both";
}

TEST(PlanInSimulation, RefusesWhatWouldNotRunIt) {
  const ProfileFile profile = Profile({"a"});
  Scenario scenario = InShares(profile, 10, 1);
  const auto fault = [&](const char* policy) {
    const auto result = Simulate(scenario, profile, **MakePolicy(policy), {.plan = Halves(1)});
    return result ? "" : result.error().message;
  };
  EXPECT_THAT(fault("fifo"), HasSubstr("policy 'fifo' does not use plans"));
  scenario.scale_interval_s = 1;
  EXPECT_THAT(fault("planned"), HasSubstr("leave out [autoscale]"));
}

// Rates that rise to three times in four minutes, and fall back.
class PlanExecutorTest : public ::testing::Test {
 protected:
  PlanExecutorTest() : profile_(Profile({"a", "b", "c"})) {
    scenario_ = InShares(profile_, 300, 560);
    scenario_.expiry = "unmeetable";
    scenario_.lanes = 4;
    scenario_.plan_headroom = 0.4;
    scenario_.plan_shares = {20, 40, 50, 60, 80};
    scenario_.plan_planner = "gpulet";
    scenario_.schedule = folder_ / "rates.csv";
    std::ofstream out(scenario_.schedule);
    out << "at_s,all\n0,1\n";
    for (int k = 1; k <= 24; ++k) out << 30 + 10 * k << "," << 1 + k / 12.0 << "\n";
    for (int k = 23; k >= 0; --k) out << 510 - 10 * k << "," << 1 + k / 12.0 << "\n";
  }

  SimulationResult Play(const Scenario& scenario) {
    auto result = Simulate(scenario, profile_, **MakePolicy("planned"));
    EXPECT_TRUE(result) << result.error().message;
    return std::move(*result);
  }

  ProfileFile profile_;
  const TemporaryFolder folder_;
  Scenario scenario_;
};

TEST_F(PlanExecutorTest, SharesFollowTheLoadAndDeadlinesAreMet) {
  const SimulationResult result = Play(scenario_);
  const RunReport report = MakeReport(scenario_, profile_, result);
  EXPECT_LE(report.all.bad_ratio, 0.002);
  ASSERT_EQ(report.layout.size(), 27u);
  double most = 0;
  for (const LayoutPoint& point : report.layout) most = std::max(most, point.devices_used);
  const LayoutPoint& last = report.layout.back();
  EXPECT_GE(most, 1.5 * report.layout[0].devices_used);
  EXPECT_LE(last.devices_used, report.layout[0].devices_used + 0.3);
  EXPECT_GT(last.plans, 3);
  EXPECT_LT(last.plans, 60);
}

// As `tactus serve --plan` beside --planner: the file's layout serves first, and averages begin
// with the rates that it was made for.
TEST_F(PlanExecutorTest, APlanOfOnesOwnServesUntilThePlannerHasAnother) {
  scenario_.duration_s = 60;
  EXPECT_LT(Play(scenario_).layout[0].devices_used, 3) << "what the planner would begin with";
  auto plan = std::make_shared<Plan>();
  for (ModelId::rep m = 0; m < 3; ++m) {
    plan->lanes.push_back({.spec = {.device = DeviceId{m}, .lane_class = LaneClass{5}},
                           .cycle = Millis(12),
                           .entries = {{.model = ModelId{m}, .batch = 8}}});
  }
  const auto used_after = [&](double planned_rps) {
    const auto result =
        Simulate(scenario_, profile_, **MakePolicy("planned"),
                 {.plan = plan, .planned_rps = {planned_rps, planned_rps, planned_rps}});
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->layout.at(0).devices_used, 3);
    return result->layout.at(1).devices_used;
  };
  EXPECT_LT(used_after(100), 3) << "as many as arrive: fewer devices sustain them";
  EXPECT_GE(used_after(3000), 3) << "three tenths of the average are of the plan's";
}

// The same arrivals, each answered once, whatever the layout does meanwhile: a lane takes any time
// to make, plans come at any instant, deadlines are missed.
TEST_F(PlanExecutorTest, NoRequestIsLostHoweverOftenLayoutsChange) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "reorganisation_test");
    Scenario scenario = scenario_;
    scenario.seed = seed;
    scenario.duration_s = 20;
    scenario.plan_period_s = 1 + static_cast<double>(rng.Below(2));
    scenario.plan_make_least_s = 0;
    scenario.plan_make_most_s = 3 * rng.Uniform();
    scenario.plan_make_fails = rng.Below(2) == 0 ? 0.3 : 0;
    scenario.plan_headroom = 0.3 * rng.Uniform();
    scenario.plan_weight = 1;
    scenario.rate_rps = 100 + static_cast<double>(rng.Below(150));
    scenario.expiry = rng.Below(2) == 0 ? "unmeetable" : "never";
    if (rng.Below(2) == 0) scenario.capacity = {1, 1, 1, 1, 1};
    {
      std::ofstream out(scenario.schedule);
      out << "at_s,a,b,c\n";
      for (int t = 0; t < 20; t += 2) {
        out << t << "," << 3 * rng.Uniform() << "," << 3 * rng.Uniform() << "," << 3 * rng.Uniform()
            << "\n";
      }
    }
    const SimulationResult result = Play(scenario);
    EXPECT_GT(result.layout.back().plans, 2);
    scenario.plan_planner = "none";
    const auto other = Simulate(scenario, profile_, **MakePolicy("fifo"));
    ASSERT_TRUE(other);
    std::multiset<std::pair<TimePoint, std::uint32_t>> arrivals;
    for (const RequestRecord& r : result.records) arrivals.emplace(r.arrival, r.model);
    std::multiset<std::pair<TimePoint, std::uint32_t>> expected;
    for (const RequestRecord& r : other->records) expected.emplace(r.arrival, r.model);
    ASSERT_EQ(arrivals, expected) << "a request is lost or answered twice";
  }
}

// The device that refuses a lane keeps the layout that it has, and is asked again.
TEST_F(PlanExecutorTest, WhereNoLaneCanBeMadeTheFirstLayoutServesOn) {
  scenario_.plan_make_fails = 1;
  const RunReport report = MakeReport(scenario_, profile_, Play(scenario_));
  const LayoutPoint& last = report.layout.back();
  EXPECT_GT(last.given_up, 3);
  EXPECT_EQ(last.lanes, report.layout[0].lanes);
  EXPECT_EQ(last.devices_used, report.layout[0].devices_used);
  EXPECT_LE(report.layout[0].bad_ratio, 0.01) << "while the load is what it was planned for";
  EXPECT_LE(last.bad_ratio, 0.01) << "and when it is that again";

  scenario_.plan_make_fails = 0.3;
  const RunReport some = MakeReport(scenario_, profile_, Play(scenario_));
  EXPECT_GT(some.layout.back().given_up, 0);
  EXPECT_LT(some.all.bad_ratio, report.all.bad_ratio) << "what is given up is tried again";
}

// A load that no plan sustains is served in part.
TEST_F(PlanExecutorTest, AnOverloadIsServedInPart) {
  scenario_.rate_rps = 1500;
  scenario_.duration_s = 240;
  const RunReport report = MakeReport(scenario_, profile_, Play(scenario_));
  EXPECT_GT(report.all.bad_ratio, 0.02);
  EXPECT_GT(report.all.goodput_rps, 1500);
}

TEST_F(PlanExecutorTest, DevicesAreAskedForNoMoreMemoryThanTheyHave) {
  for (ProfiledModel& model : profile_.models) model.peak_memory_bytes = 1'000'000'000;
  scenario_.duration_s = 60;
  scenario_.plan_memory_mb = 900;
  const auto refused = Simulate(scenario_, profile_, **MakePolicy("planned"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("model 'a' needs 1000 MB; a device has 900"));
  // One device could serve them all.
  scenario_.rate_rps = 30;
  const auto devices = [&](double memory_mb) {
    scenario_.plan_memory_mb = memory_mb;
    const SimulationResult result = Play(scenario_);
    std::set<std::size_t> used;
    for (std::size_t lane = 0; lane < result.lanes.size(); ++lane) {
      if (result.lanes[lane].batches > 0) used.insert(lane / 4);
    }
    return used.size();
  };
  EXPECT_EQ(devices(3000), 1u);
  EXPECT_EQ(devices(2000), 2u);
  EXPECT_EQ(devices(1000), 3u);
}

TEST_F(PlanExecutorTest, SaysWhatIsMissingAtTheStart) {
  scenario_.rate_rps = 1e5;
  const auto refused = Simulate(scenario_, profile_, **MakePolicy("planned"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no plan for the rates at the start, with 40 %"));
  EXPECT_THAT(refused.error().message, HasSubstr("lacks"));
}

}  // namespace
}  // namespace tactus
