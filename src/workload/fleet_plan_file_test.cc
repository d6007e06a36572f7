// A plan that is read for another than it was, or for another fleet, sends frames where nobody
// waits for them.
#include "workload/fleet_plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "workload/fleet_file.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPlannedFleet = R"([[devices]]
name = "server"
kind = "gpu"
site = "rack"
accelerators = 2
streams = 4
memory_mb = 8000
server = true
[[devices]]
name = "camera"
kind = "small"
site = "street"
memory_mb = 1000
[[links]]
sites = ["rack", "street"]
mbps = 20
[[costs]]
model = "detect"
kind = "gpu"
batches = [1, 2]
infer_ms = [4, 6.000001]
[[costs]]
model = "detect"
kind = "small"
batches = [1]
infer_ms = [30]
[[pipelines]]
name = "p"
slo_ms = 200
source = "camera"
rate_rps = 15
[[pipelines.stages]]
name = "detect"
[[pipelines.stages]]
name = "again"
model = "detect"
after = ["detect"]
[[pipelines.stages]]
name = "more"
model = "detect"
after = ["detect"]
)";

FleetInput PlannedFleet() {
  auto fleet = ParseFleet(kPlannedFleet, "f.toml");
  EXPECT_TRUE(fleet.has_value()) << fleet.error().message;
  return *fleet;
}

// "again" and "more" share instances on the server; "detect" runs at its source.
FleetPlanFile MadePlan() {
  const FleetPipelineId p{0};
  const FleetStageId detect{0}, again{1}, more{2};
  FleetPlanFile file{.planner = "octopinf", .plan = {.epoch = 3}};
  file.plan.instances = {
      {.pipeline = p, .stage = detect, .device = DeviceId{1}, .cycle = Millis(100)},
      {.pipeline = p,
       .stage = again,
       .device = DeviceId{0},
       .accelerator = 1,
       .stream = 2,
       .batch = 2,
       .offset = Nanos(3'333'333),
       .length = Nanos(6'000'001),
       .cycle = Millis(100),
       .also = {{p, more}}}};
  file.plan.routes = RoutesOf(file.plan.instances);
  file.plan.short_of = {{p, detect, 15.1, "no \"time\""}};
  file.plan.reasons = {{p, again, "on a server: why not"}};
  file.plan.latency = {Seconds(1'000'000) - Nanos(1)};
  return file;
}

std::string TextOf(const FleetPlanFile& file) {
  return FleetPlanJson(file.plan, PlannedFleet(), file.planner);
}

// The message that refuses the plan where `change` was done to its document.
template <class Change>
std::string Refused(Change change) {
  nlohmann::json document = nlohmann::json::parse(TextOf(MadePlan()));
  change(document);
  const auto read = ParseFleetPlan(document.dump(), "plan.json", PlannedFleet());
  return read ? "" : read.error().message;
}

TEST(FleetPlanFile, IsReadAsItWasWrittenToTheLastNanosecond) {
  const std::string text = TextOf(MadePlan());
  const auto read = ParseFleetPlan(text, "plan.json", PlannedFleet());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, MadePlan());
  EXPECT_EQ(TextOf(*read), text);
}

TEST(FleetPlanFile, HasNames) {
  const auto json = nlohmann::json::parse(TextOf(MadePlan()));
  EXPECT_EQ(json["instances"][1]["stage"], "again");
  EXPECT_EQ(json["instances"][1]["device"], "server");
  EXPECT_EQ(json["instances"][1]["also"][0]["stage"], "more");
  EXPECT_EQ(json["routes"][2]["stage"], "more");
  EXPECT_EQ(json["routes"][2]["to"][0]["device"], "server");
  EXPECT_EQ(json["short_of"][0]["missing_rps"], 15.1);
}

TEST(FleetPlanFile, SaysWhatOfTheFleetIsNotAsItWas) {
  nlohmann::json document = nlohmann::json::parse(TextOf(MadePlan()));
  document["made_for"]["p"]["rate_rps"] = 300;
  const auto read = ParseFleetPlan(document.dump(), "plan.json", PlannedFleet());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->doubts, ::testing::ElementsAre("pipeline 'p': the plan was made for rate_rps = "
                                                   "300, and it is 15"));
  document.erase("made_for");
  const auto plain = ParseFleetPlan(document.dump(), "plan.json", PlannedFleet());
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_TRUE(plain->doubts.empty());
  EXPECT_THAT(Refused([](auto& plan) { plan["made_for"]["q"]["slo_ms"] = 1; }),
              HasSubstr("made_for.q: the fleet has no pipeline 'q'"));
}

TEST(FleetPlanFile, RoutesMayBeEdited) {
  nlohmann::json document = nlohmann::json::parse(TextOf(MadePlan()));
  document["routes"][0]["to"][0]["weight"] = 0.25;
  const auto read = ParseFleetPlan(document.dump(), "plan.json", PlannedFleet());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->plan.routes[0].to[0].weight, 0.25);
}

TEST(FleetPlanFile, APlanOfAnotherFleetIsRefusedWithPlaceAndRemedy) {
  const std::string renamed =
      Refused([](auto& plan) { plan["instances"][1]["device"] = "server9"; });
  EXPECT_THAT(renamed, HasSubstr("plan.json: instances[1].device: the fleet has no device "
                                 "'server9'; write one for this fleet with `tactus plan fleet"));
  EXPECT_THAT(Refused([](auto& plan) { plan["routes"][0]["pipeline"] = "q"; }),
              HasSubstr("routes[0].pipeline: the fleet has no pipeline 'q'"));
  EXPECT_THAT(Refused([](auto& plan) { plan["instances"][1]["also"][0]["stage"] = "x"; }),
              HasSubstr("instances[1].also[0].stage: pipeline 'p' has no stage 'x'"));
  EXPECT_THAT(Refused([](auto& plan) { plan["latency_ms"]["q"] = 4; }),
              HasSubstr("latency_ms.q: the fleet has no pipeline 'q'"));
  EXPECT_THAT(Refused([](auto& plan) { plan["latency_ms"].clear(); }),
              HasSubstr("latency_ms.p: is missing"));
  EXPECT_THAT(Refused([](auto& plan) { plan["instances"][1]["batch"] = 4; }),
              HasSubstr("not a plan of this fleet: p/again: a batch that was not profiled"));
  EXPECT_THAT(Refused([](auto& plan) { plan["instances"][1]["stream"] = 4; }),
              HasSubstr("a stream that server lacks"));
  EXPECT_THAT(Refused([](auto& plan) { plan["instances"].erase(1); }),
              HasSubstr("p/again: it runs nowhere, and nothing says that it is short"));
}

TEST(FleetPlanFile, RoutesLeadWhereTheirStagesRun) {
  EXPECT_THAT(Refused([](auto& plan) { plan["routes"][0]["to"][0]["device"] = "server"; }),
              HasSubstr("p/detect: its route leads where it does not run"));
  EXPECT_THAT(Refused([](auto& plan) { plan["routes"][0]["to"][0]["weight"] = 0; }),
              HasSubstr("p/detect: a weight of its route is not above 0"));
  EXPECT_THAT(Refused([](auto& plan) { plan["routes"][0]["to"].clear(); }),
              HasSubstr("p/detect: its route leads nowhere"));
  EXPECT_THAT(Refused([](auto& plan) { plan["routes"].erase(2); }),
              HasSubstr("p/more: it runs, and has no route"));
  EXPECT_THAT(Refused([](auto& plan) { plan["routes"].push_back(plan["routes"][0]); }),
              HasSubstr("p/detect: it has two routes"));
  EXPECT_THAT(
      Refused([](auto& plan) { plan["routes"][0]["to"].push_back(plan["routes"][0]["to"][0]); }),
      HasSubstr("p/detect: its route names a device twice"));
}

TEST(FleetPlanFile, MistakesAreNamedByTheirPlace) {
  EXPECT_THAT(Refused([](auto& plan) { plan["tactus_fleet_plan"] = 2; }),
              HasSubstr("tactus_fleet_plan: must be 1"));
  EXPECT_THAT(Refused([](auto& plan) { plan["instances"][0]["offset_ms"] = -1; }),
              HasSubstr("instances[0].offset_ms: must be a number from 0"));
  EXPECT_THAT(Refused([](auto& plan) { plan["instances"][0]["cycle_ms"] = 0; }),
              HasSubstr("its cycle is not above 0"));
  EXPECT_THAT(Refused([](auto& plan) { std::swap(plan["instances"][0], plan["instances"][1]); }),
              HasSubstr("instances do not come by pipeline, then stage"));
  EXPECT_THAT(Refused([](auto& plan) { plan["instances"][0]["ofset_ms"] = 1; }),
              HasSubstr("instances[0].ofset_ms: unknown here"));
  EXPECT_THAT(Refused([](auto& plan) { plan.erase("routes"); }), HasSubstr("routes: is missing"));
  const auto torn = ParseFleetPlan("{\n  \"planner\"", "plan.json", PlannedFleet());
  ASSERT_FALSE(torn);
  EXPECT_THAT(torn.error().message, HasSubstr("plan.json:2:"));
  EXPECT_THAT(torn.error().message, HasSubstr("write one for this fleet"));
}

}  // namespace
}  // namespace tactus
