// Without these a stage that gets busy between two plans would wait for the next one, or the plan
// that the AutoScaler makes meanwhile would not be rolled out as safely as any other.
#include "planners/fleet_scaling.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/fleet_world_test.h"
#include "fleet/two_nodes_test.h"
#include "planners/fleet_registry.h"

namespace tactus {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct ToldPlans final : FleetHistory {
  void OnPlan(TimePoint, PlanId id, const FleetInput& input, const FleetPlan& plan) override {
    lines.push_back("plan " + std::to_string(id.epoch) + " for " +
                    std::to_string(input.devices.size()));
    instances = plan.instances.size();
  }
  void OnScaled(TimePoint, PlanId id, const std::string& what) override {
    lines.push_back("scaled " + std::to_string(id.epoch) + " " + what);
    ++scaled;
  }
  void OnTakenUp(TimePoint, PlanId id) override {
    lines.push_back("taken up " + std::to_string(id.epoch));
  }
  void OnRollout(TimePoint, PlanId id, bool adopted, const std::string& why) override {
    lines.push_back((adopted ? "adopted " : "abandoned ") + std::to_string(id.epoch) + " " + why);
  }
  std::vector<std::string> lines;
  std::size_t instances = 0;  // of the last plan
  int scaled = 0;
};

// As a controller drives it; each plan is one of this fleet.
auto Scaling(const std::string& planner, AutoScalerOptions options = {}) {
  return [planner, scaling = FleetScaling(planner, options)](
             const FleetInput& input, FleetPlan& plan, TimePoint now) mutable {
    const auto changes = scaling.Step(input, plan, now);
    EXPECT_EQ(FaultOf(plan, input, UseLimitOf(planner)), "");
    return TextOf(changes, input, plan);
  };
}

// What would reach the world's fleet at so many times the declared rates, by model.
std::vector<ModelRate> Times(double factor, int edges) {
  const FleetInput fleet = FleetWorld::MadeFleet(1, edges);
  std::vector<ModelRate> rates;
  for (const std::string& model : fleet.models) rates.push_back({model, 0});
  for (FleetPipelineId::rep p = 0; p < fleet.pipelines.size(); ++p) {
    const auto& stages = fleet.pipelines[p].stages;
    for (FleetStageId::rep s = 0; s < stages.size(); ++s) {
      rates[stages[s].model.value()].rate_rps +=
          factor * fleet.RateOf(FleetPipelineId{p}, FleetStageId{s});
    }
  }
  return rates;
}

class ScaledWorld : public ::testing::Test {
 protected:
  // Server and three cameras; the server reports the rates of all.
  FleetWorldOptions Options() {
    FleetWorldOptions options{.seed = 5, .servers = 1, .edges = 3, .faults = false};
    options.planning = [this](const FleetInput& input) {
      ++planned;
      return PlanFleet("octopinf", input);
    };
    options.leader.scaling = Scaling("octopinf");
    options.history = &told;
    options.rates = [this](const std::string& node, TimePoint) {
      return node == "server0" ? Times(factor, 3) : std::vector<ModelRate>{};
    };
    return options;
  }

  ToldPlans told;
  int planned = 0;
  double factor = 1;
};

TEST_F(ScaledWorld, ARateThatRisesGetsInstancesBeforeTheNextPlanAndGivesThemBack) {
  FleetWorld world(Options());
  world.Run(kStart + Seconds(60));
  ASSERT_TRUE(world.Settled());
  const std::size_t before = told.instances;
  EXPECT_EQ(told.scaled, 0) << "the plan is one for these rates";
  factor = 8;
  world.Run(kStart + Seconds(100));
  EXPECT_TRUE(world.Settled()) << world.Tail();
  EXPECT_THAT(told.lines, Contains(StartsWith("scaled 2 camera0/")));
  EXPECT_THAT(told.lines, Contains("adopted 2 "));
  EXPECT_GT(told.instances, before);
  const std::size_t most = told.instances;
  world.Run(kStart + Seconds(200));
  EXPECT_EQ(told.instances, most) << "not again within two and a half minutes";

  factor = 1;
  world.Run(kStart + Seconds(300));
  EXPECT_EQ(told.instances, most) << "none is given back within four minutes";
  world.Run(kStart + Seconds(358));
  EXPECT_EQ(told.instances, before);
  EXPECT_TRUE(world.Settled()) << world.Tail();
  EXPECT_EQ(planned, 1) << "all of it between two plans";
  EXPECT_EQ(world.abandoned(), 0);
}

TEST_F(ScaledWorld, ANodeThatDiesInTheMiddleIsPlannedWithoutAndScalingGoesOn) {
  FleetWorldOptions options = Options();
  FleetWorld* at = nullptr;
  bool killed = false;
  options.on_order = [&](const ToNode& order) {
    const auto* prepare = std::get_if<PrepareOrder>(&order.what);
    if (killed || prepare == nullptr || prepare->slice.id.epoch != 2) return;
    killed = true;
    at->StopHost("edge0");  // the first: those behind it get other numbers
  };
  FleetWorld world(options);
  at = &world;
  world.Run(kStart + Seconds(40));
  factor = 8;
  world.Run(kStart + Seconds(90));
  ASSERT_TRUE(killed);
  EXPECT_THAT(told.lines,
              Contains(HasSubstr("abandoned 2 edge0: it has not been heard of for 10 s")));
  EXPECT_THAT(told.lines, Contains("plan 3 for 3"));
  EXPECT_THAT(told.lines, Contains("adopted 3 "));
  EXPECT_EQ(world.leader().serving(), (PlanId{1, 3}));
  factor = 24;
  const std::size_t before = told.instances;
  world.Run(kStart + Seconds(150));
  EXPECT_GE(told.scaled, 2);
  EXPECT_GT(told.instances, before);
  EXPECT_THAT(told.lines, Not(Contains(HasSubstr("scaled 4 camera0/")))) << "it is away";
  EXPECT_EQ(world.SliceOf("server0").id, world.leader().serving());
  EXPECT_EQ(world.SliceOf("edge1").id, world.leader().serving());
  EXPECT_EQ(world.SliceOf("edge1").routes.size(), 2u);
}

// Whatever dies, is lost or comes late while rates jump: the world checks after each event that
// nobody sends to what is not ready, and that plans of one number are one plan.
TEST(FleetScalingWorld, EverySeedHealsAndIsTheSameTwiceWhileItIsScaled) {
  const AutoScalerOptions hasty{.after_up = Seconds(4), .after_down = Seconds(7)};
  int scaled = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::uint64_t sums[2] = {};
    for (std::uint64_t& sum : sums) {
      ToldPlans told;
      FleetWorldOptions options{.seed = seed};
      options.planning = [](const FleetInput& input) { return PlanFleet("octopinf", input); };
      options.leader.scaling = Scaling("octopinf", hasty);
      options.leader.scale_every = Seconds(2);
      options.leader.rollout.prepare_within = Seconds(15);
      options.leader.rollout.commit_within = Seconds(15);
      options.leader.replan_every = Seconds(25);
      options.leader.refused_for = Seconds(5);
      options.leader.forget_after = Seconds(100'000);
      options.history = &told;
      options.rates = [&](const std::string& node, TimePoint now) {
        if (now >= options.heal_at) return Times(1, 3);  // of five nodes: five times as much
        const auto turn = std::to_string((now - kStart) / Seconds(5));
        return Times(6 * Rng::Stream(seed, node + turn).Uniform(), 3);
      };
      FleetWorld world(options);
      world.Run(options.heal_at);
      const TimePoint bound = options.heal_at + Seconds(80);
      while (!world.Settled() && world.now() < bound && !HasFailure()) {
        world.Run(world.now() + Seconds(1));
      }
      ASSERT_TRUE(world.Settled()) << world.Tail();
      ASSERT_FALSE(HasFailure());
      sum = world.sum();
      scaled += told.scaled;
    }
    ASSERT_EQ(sums[0], sums[1]) << "two runs differ";
  }
  EXPECT_GT(scaled, 24);
}

// A plan that was taken up is changed too, if it is known whole and is what the nodes serve.
TEST(FleetScalingLeader, APlanOfAnEarlierLeaderIsChangedIfItIsKnown) {
  for (const std::string known : {"nothing", "another", "what is served"}) {
    SCOPED_TRACE(known);
    TwoNodes nodes;
    FleetLeader first(TwoNodes::Fleet(), TwoNodes::OnTheFirst, {}, {}, nodes.now);
    nodes.PassSeconds(first, 5);
    nodes.Connect();
    FleetPlan plan = *TwoNodes::OnTheFirst(TwoNodes::Fleet());
    if (known == "another") plan.instances.front().batch = 4;
    ToldPlans told;
    LeaderOptions options;
    options.remembered.plans.push_back({.id = {1, 1},
                                        .nodes = {"server0", "edge0"},
                                        .links = TwoNodes::Fleet().links,
                                        .adopted = true});
    if (known != "nothing") options.remembered.plans.back().plan = plan;
    options.scaling = [](const FleetInput&, FleetPlan& serving, TimePoint) -> std::string {
      if (serving.instances.size() > 1) return "";
      serving.instances.push_back(serving.instances.front());
      serving.routes = RoutesOf(serving.instances);
      return "one more";
    };
    FleetLeader leader(TwoNodes::Fleet(), TwoNodes::OnTheFirst, options, {.term = 1, .epoch = 1},
                       nodes.now, &told);
    nodes.PassSeconds(leader, 60);
    if (known != "what is served") {
      EXPECT_THAT(told.lines, ElementsAre("taken up 1"));
      continue;
    }
    EXPECT_THAT(told.lines,
                ElementsAre("taken up 1", "plan 2 for 2", "scaled 2 one more", "adopted 2 "));
    EXPECT_EQ(nodes.server.slice().id, (PlanId{2, 2}));
    EXPECT_THAT(nodes.server.slice().instances, SizeIs(2));
    EXPECT_EQ(nodes.edge.slice().routes.at(0).to.at(0).weight, 2) << "as many as there are";
  }
}

// A node without room for one more instance must not lose what it serves, nor be asked again and
// again.
TEST(FleetScalingLeader, WhereANodeRefusesAChangedPlanTheOneBeforeServesUntilTheNext) {
  TwoNodes nodes;
  ToldPlans told;
  LeaderOptions options;
  options.scaling = [](const FleetInput&, FleetPlan& serving, TimePoint) -> std::string {
    if (serving.instances.size() > 1) return "";
    serving.instances.push_back(serving.instances.front());
    serving.instances.back().stage = FleetStageId{1};
    serving.routes = RoutesOf(serving.instances);
    return "another model";
  };
  FleetLeader leader(TwoNodes::Fleet(), TwoNodes::OnTheFirst, options, {}, nodes.now, &told);
  nodes.PassSeconds(leader, 10);
  nodes.server_refuses = true;
  nodes.PassSeconds(leader, 200);
  const std::vector<std::string> before = {"plan 1 for 2", "adopted 1 ", "plan 2 for 2",
                                           "scaled 2 another model",
                                           "abandoned 2 server0: model 'name': no memory"};
  EXPECT_EQ(told.lines, before);
  EXPECT_EQ(leader.serving(), (PlanId{1, 1}));
  EXPECT_EQ(nodes.server.slice().id, (PlanId{1, 1}));
  EXPECT_EQ(nodes.edge.slice().id, (PlanId{1, 1}));
  EXPECT_THAT(leader.View(nodes.now).problem, HasSubstr("server0"));

  nodes.server_refuses = false;
  nodes.PassSeconds(leader, 250);  // the next plan is what serves, and is scaled
  EXPECT_THAT(told.lines, Contains("scaled 3 another model"));
  EXPECT_EQ(nodes.server.slice().id, (PlanId{1, 3}));
  EXPECT_EQ(leader.View(nodes.now).problem, "");
}

}  // namespace
}  // namespace tactus
