// Without these the AutoScaler would count a stage's waiting time against another stage once a
// pipeline is away, or give windows to plans that have none.
#include "planners/fleet_scaling.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/fleet_registry.h"

namespace tactus {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// So many cameras whose one stage a server runs: 10 ms an item.
FleetInput Cameras(int count) {
  FleetInput input;
  input.kinds = {"gpu", "small"};
  input.sites = {"rack"};
  input.models = {"detect"};
  input.devices = {
      {.name = "server", .accelerators = 2, .streams = 4, .memory_mb = 4000, .server = true}};
  input.costs = {
      {ModelId{0}, KindId{0}, 100, {{.batch = 1, .infer = Millis(10), .peak_mb = 10, .use = 0.1}}}};
  for (int c = 0; c < count; ++c) {
    const SiteId site{static_cast<SiteId::rep>(input.sites.size())};
    input.sites.push_back("street" + std::to_string(c));
    input.devices.push_back(
        {.name = "camera" + std::to_string(c), .kind = KindId{1}, .site = site, .memory_mb = 300});
    input.links.push_back({.a = SiteId{0}, .b = site, .mbps = 100, .rtt = Millis(10)});
    input.pipelines.push_back(
        {.name = "p" + std::to_string(c),
         .slo = Millis(200),
         .source = DeviceId{static_cast<DeviceId::rep>(input.devices.size() - 1)},
         .rate_rps = 5,
         .stages = {{.name = "detect", .model = ModelId{0}, .in_kb = 10, .out_kb = 1}}});
  }
  return input;
}

TEST(FleetScaling, IsOctopInfsAndItsChangesAreTold) {
  EXPECT_TRUE(IsScaled("octopinf"));
  EXPECT_TRUE(IsScaled("octopinf-relieved"));
  EXPECT_FALSE(IsScaled("rim"));
  FleetInput input = Cameras(2);
  auto plan = PlanFleet("octopinf-unshared", input);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_THAT(plan->instances, SizeIs(2));
  FleetScaling scaling("octopinf-unshared");
  EXPECT_THAT(scaling.Step(input, *plan, kStart), IsEmpty());
  for (FleetPipeline& each : input.pipelines) each.rate_rps = 9;  // in cycles of 100 ms: 0.9
  const auto changes = scaling.Step(input, *plan, kStart + Seconds(30));
  EXPECT_EQ(FaultOf(*plan, input), "");
  EXPECT_EQ(TextOf(changes, input, *plan),
            "p0/detect 1 -> 2 instances (busy 0.90), p1/detect 1 -> 2 instances (busy 0.90)");
  EXPECT_EQ(TextOf(changes, input, *plan, 1), "p0/detect 1 -> 2 instances (busy 0.90) and 1 more");
  EXPECT_EQ(TextOf({{FleetPipelineId{0}, FleetStageId{0}, 0, 0.9}}, input, *plan), "")
      << "no room is no change";
}

TEST(FleetScaling, OtherPipelinesWaitForNothingOfThoseBefore) {
  FleetInput two = Cameras(2);
  for (FleetPipeline& each : two.pipelines) each.rate_rps = 9;
  FleetInput slow = Cameras(2);
  auto plan = PlanFleet("octopinf-unshared", slow);
  ASSERT_TRUE(plan) << plan.error().message;
  FleetScaling scaling("octopinf-unshared");
  EXPECT_THAT(scaling.Step(two, *plan, kStart), SizeIs(2));
  two.pipelines[0].rate_rps = two.pipelines[1].rate_rps = 30;
  EXPECT_THAT(scaling.Step(two, *plan, kStart + Seconds(30)), IsEmpty()) << "they have to wait";
  // The first camera is away: the second one has its number.
  FleetInput one = Cameras(1);
  one.pipelines[0].name = "p1";
  auto fewer = PlanFleet("octopinf-unshared", one);
  ASSERT_TRUE(fewer) << fewer.error().message;
  one.pipelines[0].rate_rps = 30;
  EXPECT_THAT(scaling.Step(one, *fewer, kStart + Seconds(60)), SizeIs(1));
}

TEST(FleetScaling, PlansWithoutWindowsStaySo) {
  FleetInput input = Cameras(1);
  auto plan = PlanFleet("octopinf-relieved", input);
  ASSERT_TRUE(plan) << plan.error().message;
  const std::size_t before = plan->instances.size();
  input.pipelines[0].rate_rps = 90;  // of 100 that one sustains
  FleetScaling scaling("octopinf-relieved");
  EXPECT_THAT(scaling.Step(input, *plan, kStart), SizeIs(1));
  EXPECT_THAT(plan->instances, SizeIs(before + 1));
  for (const FleetInstance& each : plan->instances) EXPECT_EQ(each.length, Duration{});
}

}  // namespace
}  // namespace tactus
