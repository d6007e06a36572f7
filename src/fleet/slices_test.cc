// Without these a node could be sent another's part of a plan, or take over before those it sends
// to.
#include "fleet/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/fleet_world_test.h"

namespace tactus {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(Slices, SourcesRouteAllStagesAndTakeOverLast) {
  const FleetInput input = FleetWorld::MadeFleet(1, 2);
  FleetPlan plan;  // camera0: find at its source, more at the server; camera1: all at the server
  plan.instances = {{FleetPipelineId{0}, FleetStageId{0}, DeviceId{1}},
                    {FleetPipelineId{0}, FleetStageId{1}, DeviceId{0}},
                    {FleetPipelineId{0}, FleetStageId{1}, DeviceId{0}},
                    {FleetPipelineId{1}, FleetStageId{0}, DeviceId{0}},
                    {FleetPipelineId{1}, FleetStageId{1}, DeviceId{0}}};
  plan.routes = RoutesOf(plan.instances);
  const auto slices = SlicesOf(plan, input, {1, 1}, {"server0", "edge0", "edge1"});
  EXPECT_THAT(ModelsOf(slices.at("server0")), ElementsAre("find", "name", "read"));
  EXPECT_THAT(ModelsOf(slices.at("edge0")), ElementsAre("find"));
  EXPECT_EQ(slices.at("edge0").routes.at(1),
            (SliceRoute{"camera0", "more", "name", {{"server0", 2}}}));
  EXPECT_EQ(slices.at("edge1").routes.at(0),
            (SliceRoute{"camera1", "find", "find", {{"server0", 1}}}));
  EXPECT_EQ(slices.at("edge1").routes.at(1).stage, "more") << "though it runs none of it";
  EXPECT_TRUE(slices.at("server0").routes.empty());
  EXPECT_THAT(WavesOf(slices, input),
              ElementsAre(ElementsAre("server0"), ElementsAre("edge0", "edge1")));
}

// Where stages share an instance, each has a route to it.
TEST(Slices, WhatRunsInAnothersBatchesIsRoutedThere) {
  const FleetInput input = FleetWorld::MadeFleet(1, 2);
  FleetInstance shared{FleetPipelineId{0}, FleetStageId{0}, DeviceId{0}};
  shared.also = {{FleetPipelineId{1}, FleetStageId{0}}};
  FleetPlan plan;
  plan.instances = {shared};
  plan.routes = RoutesOf(plan.instances);
  const auto slices = SlicesOf(plan, input, {1, 1}, {"server0", "edge1"});
  EXPECT_THAT(slices.at("edge1").routes,
              ElementsAre(SliceRoute{"camera1", "find", "find", {{"server0", 1}}}));
}

TEST(Slices, WithoutADeviceItsPipelinesAreLostAndTheOthersKeepTheirSources) {
  const FleetInput input = FleetWorld::MadeFleet(1, 3);
  std::vector<LostPipeline> lost;
  const FleetInput rest = Without(input, {"edge0"}, lost);
  EXPECT_THAT(lost, ElementsAre(LostPipeline{"camera0", "its source 'edge0' is away"}));
  ASSERT_EQ(rest.pipelines.size(), 2u);
  EXPECT_EQ(rest.devices[rest.pipelines[0].source.value()].name, "edge1");
  EXPECT_TRUE(CheckFleet(rest));
}

TEST(Slices, APipelineIsLostWithTheLastDeviceOfAStage) {
  FleetInput input = FleetWorld::MadeFleet(1, 2);
  const KindId edge = input.devices[1].kind;
  const FleetStage& stage = input.pipelines[1].stages[1];
  std::erase_if(input.costs, [&](const FleetCost& cost) {
    return cost.kind == edge && cost.model == stage.model;
  });
  std::vector<LostPipeline> lost;
  Without(input, {"server0"}, lost);
  EXPECT_THAT(
      lost,
      Contains(LostPipeline{
          "camera1", "no node that is here and in its reach has [[costs]] of model '" +
                         input.models[stage.model.value()] + "', its stage '" + stage.name + "'"}));
}

TEST(Slices, MeasuredRatesReplaceDeclaredOnesFromATenthOn) {
  const FleetInput input = FleetWorld::MadeFleet(1, 1);  // 5 frames a second, 2 items each
  const FleetInput seen = Measured(input, {{"find", 20}, {"name", 10}});
  EXPECT_DOUBLE_EQ(seen.pipelines[0].rate_rps, 20);
  EXPECT_DOUBLE_EQ(seen.pipelines[0].stages[1].items, 0.5);
  EXPECT_DOUBLE_EQ(Measured(input, {{"find", 0}}).pipelines[0].rate_rps, 0.5);
  EXPECT_EQ(Measured(input, {}), input);
}

TEST(Slices, MeasuredLinksReplaceDeclaredOnesTheSlowestOfThoseThatCrossIt) {
  const FleetInput input = FleetWorld::MadeFleet(1, 2);
  const std::size_t link = input.LinkBetween(DeviceId{1}, DeviceId{0});
  ASSERT_NE(link, kNoLink);
  const FleetInput slow = WithLinks(input, {{{"edge0", "server0"}, {3, Millis(40)}},
                                            {{"server0", "edge0"}, {2, Millis(10)}},
                                            {{"edge0", "nobody"}, {1, Millis(1)}}});
  EXPECT_EQ(slow.links[link].mbps, 2);
  EXPECT_EQ(slow.links[link].rtt, Millis(40));
  EXPECT_TRUE(LinksDiffer(slow.links, input.links));
  const FleetInput probed = WithLinks(input, {{{"edge0", "server0"}, {0, Millis(1)}}});
  EXPECT_EQ(probed.links[link].mbps, input.links[link].mbps);
  EXPECT_FALSE(LinksDiffer(probed.links, input.links)) << "no rate was measured";
}

}  // namespace
}  // namespace tactus
