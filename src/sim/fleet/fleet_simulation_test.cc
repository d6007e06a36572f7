// A fleet as a story in virtual time. Without these a frame could end twice or never where devices
// die, links stand still and plans change, and a comparison of planners would be one of bugs.
#include "sim/fleet/fleet_simulation.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "planners/fleet_registry.h"
#include "policies/registry.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

constexpr const char* kStreetFleet = R"([fleet]
duration_s = 20
period_s = 0
autoscale_s = 0
spread = 0
crosstalk = 0
[[devices]]
name = "server"
kind = "gpu"
site = "rack"
accelerators = 2
streams = 2
memory_mb = 8000
server = true
[[devices]]
name = "camera"
kind = "small"
site = "street"
memory_mb = 4000
[[links]]
sites = ["rack", "street"]
mbps = 40
rtt_ms = 10
[[costs]]
model = "detect"
kind = "gpu"
batches = [1, 2, 4]
infer_ms = [4, 6, 10]
use = [0.2, 0.3, 0.4]
[[costs]]
model = "detect"
kind = "small"
batches = [1, 2]
infer_ms = [20, 30]
use = [0.6, 0.8]
[[costs]]
model = "name"
kind = "gpu"
batches = [1, 4, 16]
infer_ms = [2, 3, 6]
use = [0.1, 0.2, 0.3]
[[pipelines]]
name = "p"
slo_ms = 200
source = "camera"
rate_rps = 10
[[pipelines.stages]]
name = "detect"
in_kb = 100
out_kb = 1
[[pipelines.stages]]
name = "name"
after = ["detect"]
items = 3
in_kb = 5
out_kb = 1
)";

FleetScenario StreetFleet(std::vector<std::string> settings = {}) {
  auto scenario = ParseFleetScenario(kStreetFleet, "street.toml", settings);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
  return *scenario;
}

FleetSimulationOptions FleetOptions() {
  return {.policies = [](const std::string& name) { return MakePolicy(name); }};
}

FleetReport SimulatedFleet(const FleetScenario& scenario, const FleetSimulationOptions& options) {
  auto report = SimulateFleet(scenario, options);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return *report;
}

// Every run of every stage ends in one way, and every frame once.
void ExpectAllEndOnce(const FleetReport& report) {
  EXPECT_EQ(report.ended, report.frames);
  std::int64_t results = 0;
  for (const FleetStageReport& each : report.stages) {
    EXPECT_EQ(each.runs, each.answered + each.expired + each.shed + each.link_dead +
                             each.link_full + each.cancelled)
        << each.pipeline << "/" << each.stage;
    if (each.stage == "name") results += each.answered;
  }
  EXPECT_EQ(report.on_time() + report.late(), results);
  EXPECT_LE(report.on_time() + report.late(), report.offered());
}

TEST(FleetSimulation, ServesAllThatItCan) {
  for (const FleetPlannerInfo& planner : FleetPlanners()) {
    if (planner.name == "octopinf-edge") continue;  // a camera that can only detect
    const FleetReport report =
        SimulatedFleet(StreetFleet({"planner=" + std::string(planner.name)}), FleetOptions());
    ExpectAllEndOnce(report);
    EXPECT_EQ(report.frames, 200) << planner.name;
    EXPECT_GT(report.on_time_share(), 0.99) << planner.name;
  }
}

// A frame goes to the server in 100 kB / 40 Mbit/s = 20 ms and 5 ms of latency, is detected in 4 ms
// and its objects named in at least 2: nothing is quicker, and there is no result from the camera.
TEST(FleetSimulation, TakesTheTimeOfLinksAndBatches) {
  const FleetReport report = SimulatedFleet(StreetFleet({"planner=jellyfish"}), FleetOptions());
  EXPECT_GE(report.pipelines[0].p50_ms, 31);
  EXPECT_LE(report.pipelines[0].p50_ms, 50);
  EXPECT_NEAR(report.links[1].megabytes, 20, 1e-9) << "200 frames up";
  EXPECT_EQ(report.links[0].delivered, 0) << "the sink is at the server";
}

TEST(FleetSimulation, LosesFramesWhereTheLinkIsTooSlowAndNotWhereTheCameraDetects) {
  FleetScenario narrow = StreetFleet({"planner=jellyfish"});
  narrow.input.links[0].mbps = 2;  // a frame takes 400 ms
  const FleetReport on_server = SimulatedFleet(narrow, FleetOptions());
  ExpectAllEndOnce(on_server);
  EXPECT_EQ(on_server.on_time(), 0);
  EXPECT_EQ(on_server.stages[0].link_dead, on_server.stages[0].runs);
  narrow.run.planner = "octopinf";
  const FleetReport at_source = SimulatedFleet(narrow, FleetOptions());
  ExpectAllEndOnce(at_source);
  EXPECT_EQ(at_source.stages[0].device, "camera");
  EXPECT_GT(at_source.on_time_share(), 0.8);
}

TEST(FleetSimulation, ReplansWhenTheLinkChanges) {
  FleetScenario changing = StreetFleet({"planner=octopinf", "duration_s=150", "period_s=10"});
  // Crops are two thirds of a frame, for which it is not worth to detect at the camera; then frames
  // do not fit through the link any more and crops do.
  changing.input.pipelines[0].stages[1].in_kb = 20.1;
  changing.input.pipelines[0].slo = Millis(600);
  changing.link_rates = {{{0, 40}, {70, 6}, {1000, 6}}};
  const FleetReport with = SimulatedFleet(changing, FleetOptions());
  changing.run.period_s = 0;
  const FleetReport without = SimulatedFleet(changing, FleetOptions());
  ExpectAllEndOnce(with);
  EXPECT_GT(with.plans, 1);
  EXPECT_EQ(without.plans, 1);
  EXPECT_EQ(with.stages[0].device, "camera") << "the last plan detects at the source";
  EXPECT_GT(with.on_time(), without.on_time());
}

// The leader that serves clusters plans here too: it does not wait for the period.
TEST(FleetSimulation, ALinkThatChangesCausesAPlanBetweenTwoPeriods) {
  FleetScenario changing =
      StreetFleet({"planner=octopinf", "duration_s=150", "period_s=1000", "links_s=30"});
  changing.input.pipelines[0].stages[1].in_kb = 20.1;
  changing.input.pipelines[0].slo = Millis(600);
  changing.link_rates = {{{0, 40}, {70, 6}, {1000, 6}}};
  const FleetReport with = SimulatedFleet(changing, FleetOptions());
  changing.run.links_s = 0;
  const FleetReport without = SimulatedFleet(changing, FleetOptions());
  ExpectAllEndOnce(with);
  EXPECT_EQ(with.plans, 2);
  EXPECT_EQ(with.stages[0].device, "camera");
  EXPECT_EQ(without.plans, 1);
  EXPECT_GT(with.on_time(), without.on_time());
}

// A device that has a plan's models serves it at once; one that lacks them loads them first.
TEST(FleetSimulation, APlanServesWhenItsModelsAreLoaded) {
  FleetScenario changing = StreetFleet({"planner=octopinf", "duration_s=150", "period_s=10"});
  changing.input.pipelines[0].stages[1].in_kb = 20.1;
  changing.input.pipelines[0].slo = Millis(600);
  changing.link_rates = {{{0, 40}, {70, 6}, {1000, 6}}};
  const FleetReport soon = SimulatedFleet(changing, FleetOptions());
  changing.run.load_s = 30;
  const FleetReport later = SimulatedFleet(changing, FleetOptions());
  ExpectAllEndOnce(later);
  EXPECT_EQ(later.stages[0].device, "camera");
  EXPECT_LT(later.on_time(), soon.on_time()) << "frames are late while the camera loads";
  changing.link_rates.clear();
  const FleetReport quiet = SimulatedFleet(changing, FleetOptions());
  EXPECT_EQ(quiet.on_time(), quiet.offered());
  EXPECT_LT(quiet.plans, 10) << "of fifteen those that change nothing are not rolled out";
}

TEST(FleetSimulation, RunsAgainWhatACrashLoses) {
  FleetSimulationOptions options = FleetOptions();
  options.crashes = {{DeviceId{0}, kStart + Seconds(5), kStart + Seconds(6)}};
  const FleetReport report = SimulatedFleet(StreetFleet(), options);
  ExpectAllEndOnce(report);
  EXPECT_LT(report.on_time_share(), 0.99);
  EXPECT_GT(report.on_time_share(), 0.9) << "a second of twenty";
}

// A plan that is given serves instead of the planner's, and its routes say where frames go.
TEST(FleetSimulation, RunsThePlanThatItIsGiven) {
  const FleetScenario scenario = StreetFleet({"planner=rim", "period_s=0"});
  const auto plan = PlanFleet("jellyfish", scenario.input);
  ASSERT_TRUE(plan);
  FleetSimulationOptions options = FleetOptions();
  options.plan = &*plan;
  const FleetReport given = SimulatedFleet(scenario, options);
  ExpectAllEndOnce(given);
  EXPECT_EQ(given.stages[0].device, "server") << "rim detects at the camera";
  EXPECT_EQ(given.plans, 1);

  FleetPlan halves = *plan;
  FleetInstance at_camera = halves.instances.front();
  at_camera.device = DeviceId{1};
  at_camera.accelerator = at_camera.stream = 0;
  at_camera.batch = 1;
  halves.instances.insert(halves.instances.begin(), at_camera);
  halves.routes = RoutesOf(halves.instances);
  for (FleetTarget& each : halves.routes[0].to) each.weight = each.device == DeviceId{1} ? 3 : 1;
  options.plan = &halves;
  const FleetReport divided = SimulatedFleet(scenario, options);
  ExpectAllEndOnce(divided);
  EXPECT_NEAR(divided.links[1].megabytes, given.links[1].megabytes / 4 + 150 * 3 * 5e-3, 0.5)
      << "one frame in four goes up, of the others their crops";
}

// What is lost is sent again: later, and at the cost of the link's rate.
TEST(FleetSimulation, ALossyLinkIsSlowerAndCarriesLess) {
  FleetScenario scenario = StreetFleet({"planner=jellyfish"});
  const FleetReport whole = SimulatedFleet(scenario, FleetOptions());
  scenario.input.links[0].loss = 0.2;
  const FleetReport lossy = SimulatedFleet(scenario, FleetOptions());
  ExpectAllEndOnce(lossy);
  EXPECT_GT(lossy.pipelines[0].p50_ms, whole.pipelines[0].p50_ms + 10) << "a round trip or more";
  EXPECT_NEAR(lossy.links[1].busy, whole.links[1].busy / 0.8, 1e-3);
}

// A camera that gets more than it can look at answers at its early exit, and says how well.
TEST(FleetSimulation, CountsWhatEarlyExitsGiveByTheirAccuracy) {
  FleetScenario busy = StreetFleet({"planner=octopinf-edge"});
  busy.input.pipelines[0].rate_rps = 100;  // two in 30 ms are 67
  const FleetReport whole = SimulatedFleet(busy, FleetOptions());
  EXPECT_EQ(whole.value(), static_cast<double>(whole.on_time()));
  busy.input.costs[1].exits = {{0.25, 0.8}, {1, 1}};
  const FleetReport early = SimulatedFleet(busy, FleetOptions());
  ExpectAllEndOnce(early);
  EXPECT_TRUE(early.exits);
  EXPECT_GT(early.on_time(), whole.on_time());
  EXPECT_GT(early.value(), whole.value());
  EXPECT_LT(early.value(), static_cast<double>(early.on_time()));
  EXPECT_GE(early.value(), 0.8 * static_cast<double>(early.on_time()));
}

// Counts times the curve: half as many objects at the beginning, and three times as many later.
TEST(FleetSimulation, FollowsACurveOfObjects) {
  FleetScenario scenario = StreetFleet();
  scenario.items = {{{}, {2}}};
  const auto flat = SimulatedFleet(scenario, FleetOptions()).offered();
  EXPECT_EQ(flat, 400) << "2 of each of 200 frames";
  scenario.curve = {{0, 0.5}, {10, 0.5}, {10.001, 1.5}};
  EXPECT_NEAR(SimulatedFleet(scenario, FleetOptions()).offered(), 400, 2);
  scenario.curve = {{0, 3}};
  EXPECT_EQ(SimulatedFleet(scenario, FleetOptions()).offered(), 3 * flat);
}

TEST(FleetSimulation, SharesInstancesBetweenStagesOfOneModel) {
  FleetScenario shared = StreetFleet({"planner=octopinf"});
  shared.input.pipelines[0].stages[1].model = shared.input.pipelines[0].stages[0].model;
  shared.input.pipelines[0].slo = Millis(400);
  std::erase_if(shared.input.costs, [](const FleetCost& each) { return each.kind == KindId{1}; });
  for (const char* policy : {"horizon", "planned", "symphony"}) {
    shared.run.policy = policy;
    const FleetReport report = SimulatedFleet(shared, FleetOptions());
    ExpectAllEndOnce(report);
    EXPECT_GT(report.on_time_share(), 0.99) << policy;
    EXPECT_EQ(report.stages[1].device, "server");
  }
}

TEST(FleetSimulation, ServersMayHaveAPolicyOfTheirOwn) {
  const FleetReport same = SimulatedFleet(StreetFleet({"policy=planned"}), FleetOptions());
  const FleetReport own =
      SimulatedFleet(StreetFleet({"policy=planned", "server_policy=symphony"}), FleetOptions());
  ExpectAllEndOnce(own);
  EXPECT_EQ(own.policy, "planned (servers: symphony)");
  EXPECT_EQ(own.offered(), same.offered());
  EXPECT_NE(FleetReportsJson(std::span(&own, 1)), FleetReportsJson(std::span(&same, 1)));
  const FleetReport said =
      SimulatedFleet(StreetFleet({"policy=planned", "server_policy=planned"}), FleetOptions());
  EXPECT_EQ(said.pipelines[0].on_time, same.pipelines[0].on_time);
  EXPECT_EQ(said.pipelines[0].p99_ms, same.pipelines[0].p99_ms);
}

// What is in pictures is the same for all; and all else of the same run.
TEST(FleetSimulation, IsAFunctionOfItsScenario) {
  const std::vector<std::string> settings = {"spread=0.1", "crosstalk=0.1", "period_s=5"};
  std::vector<FleetReport> first = {SimulatedFleet(StreetFleet(settings), FleetOptions())};
  std::vector<FleetReport> second = {SimulatedFleet(StreetFleet(settings), FleetOptions())};
  EXPECT_EQ(FleetReportsJson(first), FleetReportsJson(second));
  FleetScenario other = StreetFleet(settings);
  other.run.planner = "rim";
  EXPECT_EQ(SimulatedFleet(other, FleetOptions()).offered(), first[0].offered());
  other.run.seed = 2;
  EXPECT_NE(SimulatedFleet(other, FleetOptions()).offered(), first[0].offered());
}

// A random life: crashes, outages, plans that change every few seconds, under several policies.
// TACTUS_FLEET_SOAK multiplies how long it lasts; at 1 some 100,000 items.
TEST(FleetSimulation, EndsEveryItemOnceWhateverHappens) {
  const char* const times = std::getenv("TACTUS_FLEET_SOAK");
  const double duration_s = 120 * (times == nullptr ? 1.0 : std::strtod(times, nullptr));
  const std::vector<std::string> policies = {"planned", "planned:windows=strict", "symphony",
                                             "horizon", "planned:windows=defer"};
  std::int64_t items = 0;
  for (std::uint64_t seed = 1; seed <= policies.size(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    FleetScenario scenario = StreetFleet({"planner=octopinf", "autoscale_s=3", "period_s=7",
                                          "policy=" + policies[seed - 1], "spread=0.2"});
    scenario.run.duration_s = duration_s;
    scenario.run.seed = seed;
    scenario.input.pipelines[0].rate_rps = 60;
    Rng rng = Rng::Stream(seed, "fleet soak");
    auto& rates = scenario.link_rates.emplace_back();
    for (int t = 0; t < 50; ++t) rates.push_back({2.0 * t, 60 * rng.Uniform()});
    FleetSimulationOptions options = FleetOptions();
    for (double t = 0; t < duration_s; t += 20 * rng.Uniform()) {
      const TimePoint at = kStart + FromSeconds(t);
      const DeviceId device{static_cast<DeviceId::rep>(rng.Below(2))};
      options.crashes.push_back({device, at, at + FromSeconds(3 * rng.Uniform())});
      const TimePoint from = kStart + FromSeconds(90 * rng.Uniform());
      if (options.outages.size() < 10) {
        options.outages.push_back({0, from, from + FromSeconds(4 * rng.Uniform())});
      }
    }
    const FleetReport report = SimulatedFleet(scenario, options);
    ExpectAllEndOnce(report);
    EXPECT_GT(report.plans, 5);
    EXPECT_GT(report.on_time(), 0);
    items += report.items;
  }
  RecordProperty("items", std::to_string(items));  // in --gtest_output=json
  EXPECT_GT(items, 50'000);
}

TEST(FleetSimulation, SaysWhatItCannotRun) {
  const auto error = [](const FleetScenario& scenario, const FleetSimulationOptions& options) {
    const auto report = SimulateFleet(scenario, options);
    return report ? std::string("none") : report.error().message;
  };
  EXPECT_THAT(error(StreetFleet({"planner=best"}), FleetOptions()), HasSubstr("no planner 'best'"));
  EXPECT_THAT(error(StreetFleet({"policy=best"}), FleetOptions()), HasSubstr("best"));
  EXPECT_THAT(error(StreetFleet({"server_policy=worst"}), FleetOptions()), HasSubstr("worst"));
  FleetPlan other;
  other.instances = {{.pipeline = FleetPipelineId{0},
                      .stage = FleetStageId{1},
                      .device = DeviceId{1},
                      .batch = 1,
                      .cycle = Millis(100)}};
  FleetSimulationOptions with = FleetOptions();
  with.plan = &other;
  EXPECT_THAT(error(StreetFleet(), with), HasSubstr("not one of this fleet"));
}

}  // namespace
}  // namespace tactus
