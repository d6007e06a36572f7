// Without these a leader could go on after another has taken its place, or plan again and again
// with a node that refuses.
#include "fleet/leader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/two_nodes_test.h"

namespace tactus {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

// What a store would be told.
struct Told final : FleetHistory {
  void OnStanding(TimePoint, const std::string& node, Standing now) override {
    lines.push_back(node + " " + Name(now));
  }
  void OnPlan(TimePoint, PlanId id, const FleetInput& input, const FleetPlan&) override {
    lines.push_back("plan " + std::to_string(id.epoch) + " for " +
                    std::to_string(input.devices.size()));
  }
  void OnRollout(TimePoint, PlanId id, bool adopted, const std::string& why) override {
    lines.push_back((adopted ? "adopted " : "abandoned ") + std::to_string(id.epoch) + " " + why);
  }
  std::vector<std::string> lines;
};

class LeaderTest : public ::testing::Test, protected TwoNodes {
 protected:
  void Pass(Duration time) { TwoNodes::Pass(leader, time); }

  Told told;
  FleetLeader leader{Fleet(), OnTheFirst, {}, {.term = 4, .epoch = 7}, kStart, &told};
};

TEST_F(LeaderTest, LeadsByALaterTermAndCountsOnAndTellsItsHistory) {
  Pass(Seconds(1));
  EXPECT_EQ(leader.serving(), (PlanId{5, 8}));
  EXPECT_EQ(server.slice().id, (PlanId{5, 8}));
  EXPECT_THAT(told.lines,
              ElementsAre("server0 alive", "edge0 alive", "plan 8 for 2", "adopted 8 "));
}

// A controller of a thousand nodes asks after each report: it would look at all of them each time.
TEST_F(LeaderTest, WhatIsDueNextIsNotSoughtAgainForReportsThatSayNothingNew) {
  for (int i = 0; i < 10; ++i) Pass(Seconds(1));
  Pass(Millis(50));
  const TimePoint next = leader.Next();
  EXPECT_GT(next, now);
  for (NodeState* node : {&server, &edge}) {
    const NodeActions actions = node->Take(now + Seconds(1));
    ASSERT_EQ(actions.send.size(), 1u);
    leader.Receive(actions.send[0], now);
  }
  leader.Step(now);
  EXPECT_EQ(leader.Next(), next) << "not 50 ms later, when the nodes were last heard";
  leader.Step(next);
  EXPECT_GT(leader.Next(), next) << "it was sought again once that time had come";
}

// A source that does not hear where its server is, or where it has moved to, sends nowhere.
TEST_F(LeaderTest, TellsASourceWhereItsServerIsAndWhereItMoves) {
  server.WorkerUp({}, "", "", "here:1");
  Pass(Seconds(1));
  EXPECT_EQ(edge.kept().peers, (std::vector<PeerPlace>{{"server0", "here:1"}}));
  server.WorkerDown("it died", false);
  Pass(Seconds(1));
  EXPECT_EQ(edge.kept().peers.size(), 1u) << "it comes back, mostly where it was";
  server.WorkerUp({}, "", "", "there:2");
  Pass(Seconds(1));
  EXPECT_EQ(edge.kept().peers, (std::vector<PeerPlace>{{"server0", "there:2"}}));
}

// A stage must come back to its camera when the link gets slow, and not on the same figure twice.
TEST_F(LeaderTest, PlansAnewWhenALinkCarriesFarLessOrFarMore) {
  int plans = 0;
  const FleetInput fleet = Fleet();
  const std::size_t link = fleet.LinkBetween(DeviceId{1}, DeviceId{0});
  const double declared = fleet.links[link].mbps;
  FleetLeader planner(
      fleet,
      [&](const FleetInput& input) -> Expected<FleetPlan> {
        ++plans;
        const bool slow = input.links.at(link).mbps < declared / 2;
        FleetPlan plan;
        plan.instances.push_back(
            {FleetPipelineId{0}, FleetStageId{0}, slow ? DeviceId{1} : DeviceId{0}});
        plan.routes = RoutesOf(plan.instances);
        return plan;
      },
      {}, {}, now);
  NodeState camera{{.name = "edge0"}, {.who = {2, 1}}};
  NodeState rack{{.name = "server0"}, {.who = {1, 1}}};
  camera.WorkerUp({}, "", "", "c:1");
  rack.WorkerUp({}, "", "", "r:1");
  const auto pass = [&](int seconds) {
    for (int step = 0; step < 10 * seconds; ++step) {
      for (NodeState* node : {&camera, &rack}) {
        NodeActions actions = node->Take(now);
        if (actions.keep) node->WasKept();
        for (const std::string& model : actions.load) node->Loaded(model);
        for (const std::string& model : actions.unload) node->Unloaded(model);
        for (const FromNode& message : actions.send) planner.Receive(message, now);
      }
      planner.Step(now);
      const LeaderActions actions = planner.Take();
      if (actions.keep) planner.WasKept();
      for (const ToNode& order : actions.send) {
        (order.node == "edge0" ? camera : rack).Receive(order, now);
      }
      now += Millis(100);
    }
  };
  const auto runs_at = [&] { return camera.slice().routes.at(0).to.at(0).node; };
  pass(10);
  EXPECT_EQ(runs_at(), "server0");
  EXPECT_EQ(plans, 1);
  camera.MeasureLinks({{"server0", {declared * 0.6, Millis(5)}}});
  pass(60);
  EXPECT_EQ(plans, 1) << "not so far off";
  camera.MeasureLinks({{"server0", {declared * 0.1, Millis(5)}}});
  pass(10);
  EXPECT_EQ(plans, 2);
  EXPECT_EQ(runs_at(), "edge0");
  // Nothing crosses the link any more but probes: what it carried last holds.
  camera.MeasureLinks({{"server0", {0, Millis(5)}}});
  pass(120);
  EXPECT_EQ(plans, 2);
  EXPECT_EQ(planner.View(now).nodes.at(0).links.at(0).reading.mbps, declared * 0.1);
  // In the end the declared figure is tried again.
  pass(500);
  EXPECT_EQ(runs_at(), "server0");
}

TEST_F(LeaderTest, WhoRefusesIsNamedAndLeftOut) {
  server_refuses = true;
  Pass(Millis(600));
  Pass(Millis(600));
  EXPECT_THAT(told.lines, Contains("abandoned 8 server0: model 'find': no memory"));
  EXPECT_THAT(told.lines, Contains("plan 9 for 1")) << "edge0 alone";
  EXPECT_EQ(leader.serving().epoch, 9u);
  EXPECT_EQ(leader.View(now).nodes.at(1).left_out, "model 'find': no memory");
  server_refuses = false;
  for (int s = 0; s < 70; ++s) Pass(Seconds(1));
  EXPECT_EQ(server.slice().id, leader.serving()) << "a minute later it is asked again";
}

// A node whose agent is not heard may serve all the same. Who sends to it must go on until it is
// forgotten, whoever leads; else a controller that is slow to hear of a node stops its pipelines.
TEST_F(LeaderTest, APipelineThatMissesANodeStaysWhereItIsUntilTheNodeIsForgotten) {
  FleetInput fleet = Fleet();
  std::erase_if(fleet.costs, [](const auto& each) { return each.kind == KindId{1}; });
  FleetLeader first(fleet, OnTheFirst, {}, {}, now);
  PassSeconds(first, 5);
  const auto sends_to = [this] {
    std::vector<std::string> nodes;
    for (const SliceRoute& route : edge.slice().routes) {
      for (const RouteTarget& each : route.to) nodes.push_back(each.node);
    }
    return nodes;
  };
  ASSERT_THAT(sends_to(), ElementsAre("server0"));

  server_is_away = true;
  PassSeconds(first, 60);
  EXPECT_THAT(first.View(now).lost, ElementsAre(Field(&LostPipeline::pipeline, "camera0")));
  EXPECT_THAT(sends_to(), ElementsAre("server0"));

  FleetLeader second(fleet, OnTheFirst, {}, {.term = 1, .epoch = 9}, now);
  Connect();
  PassSeconds(second, 60);
  EXPECT_GT(second.serving(), (PlanId{2, 9}));
  EXPECT_EQ(edge.slice().id, second.serving());
  EXPECT_THAT(second.View(now).lost, ElementsAre(Field(&LostPipeline::pipeline, "camera0")));
  EXPECT_THAT(sends_to(), ElementsAre("server0"));

  const int until_forgotten_and_planned_anew = 600 + 360;
  PassSeconds(second, until_forgotten_and_planned_anew);
  EXPECT_THAT(sends_to(), IsEmpty());
}

// A driver that wakes when something is due must not wake all the time until the node is forgotten.
TEST_F(LeaderTest, WhileANodeIsAwayNothingIsDue) {
  edge_is_away = true;
  for (int s = 0; s < 20; ++s) Pass(Seconds(1));
  ASSERT_NE(leader.rollout(), nullptr);
  ASSERT_EQ(leader.rollout()->phase(), Rollout::Phase::kRetiring) << "edge0 might send anywhere";
  EXPECT_GT(leader.Next(), now);
}

TEST_F(LeaderTest, ALaterTermEndsIt) {
  Pass(Seconds(1));
  server.Receive({"server0", {1, 1}, 6, WelcomeOrder{}}, now);
  Pass(Seconds(1));
  EXPECT_EQ(leader.superseded_why(),
            "node 'server0' obeys a leader of term 6, and this one's is 5");
  EXPECT_EQ(leader.Next(), kNever);
  EXPECT_TRUE(leader.Take().send.empty());
}

TEST_F(LeaderTest, APlanThatCannotBeMadeIsSaidAndTriedAgain) {
  bool fails = true;
  FleetLeader other(
      Fleet(),
      [&](const FleetInput& input) -> Expected<FleetPlan> {
        if (fails) return InvalidArgument("no room");
        return OnTheFirst(input);
      },
      {}, {}, now);
  const auto both = [&](std::uint64_t sequence, const decltype(FromNode::what)& what) {
    other.Receive({"server0", {1, 1}, sequence, what}, now);
    other.Receive({"edge0", {2, 1}, sequence, what}, now);
    other.Step(now);
  };
  both(1, NodeHello{});
  both(2, NodeBeat{{.term = 1}, {}});
  EXPECT_EQ(other.View(now).problem, "no plan for the nodes that are here: no room");
  fails = false;
  now += Seconds(5);
  both(3, NodeBeat{{.term = 1}, {}});
  EXPECT_NE(other.rollout(), nullptr);
}

}  // namespace
}  // namespace tactus
