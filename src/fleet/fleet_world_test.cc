// Without these a roll-out that loses a message, a leader that comes back, or an agent that
// restarts in the middle of it could leave a fleet half in one plan and half in another.
#include "fleet/fleet_world_test.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace tactus {
namespace {

LeaderOptions Hasty() {
  LeaderOptions options;
  options.rollout.prepare_within = Seconds(15);
  options.rollout.commit_within = Seconds(15);
  options.replan_every = Seconds(12);
  options.refused_for = Seconds(5);
  options.forget_after = Seconds(100'000);
  return options;
}

// More of them: TACTUS_FLEET_SOAK.
int Seeds() {
  const char* times = std::getenv("TACTUS_FLEET_SOAK");
  return 25 * (times == nullptr ? 1 : std::max(1, std::atoi(times)));
}

TEST(FleetWorld, EverySeedHealsAndIsTheSameTwice) {
  int adopted = 0;
  int abandoned = 0;
  for (int seed = 1; seed <= Seeds(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::uint64_t sums[2] = {};
    for (std::uint64_t& sum : sums) {
      FleetWorldOptions options{.seed = static_cast<std::uint64_t>(seed)};
      options.leader = Hasty();
      FleetWorld world(options);
      world.Run(options.heal_at);
      // A new leader, dead nodes, two plans that nodes refuse for a time, one that all take.
      const TimePoint bound = options.heal_at + Seconds(60);
      while (!world.Settled() && world.now() < bound && !HasFailure()) {
        world.Run(world.now() + Seconds(1));
      }
      ASSERT_TRUE(world.Settled()) << world.Tail();
      ASSERT_FALSE(HasFailure());
      sum = world.sum();
      adopted += world.adopted();
      abandoned += world.abandoned();
    }
    ASSERT_EQ(sums[0], sums[1]) << "two runs differ";
  }
  // The faults reach what they are for.
  EXPECT_GT(adopted, Seeds());
  EXPECT_GT(abandoned, Seeds());
}

TEST(FleetWorld, WithoutFaultsOnePlanIsAdoptedAndStays) {
  FleetWorldOptions options{.seed = 7, .faults = false};
  options.planning = [](const FleetInput& input) -> Expected<FleetPlan> {
    FleetPlan plan;
    for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
      for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
        plan.instances.push_back({FleetPipelineId{p}, FleetStageId{s}, DeviceId{0}});
      }
    }
    plan.routes = RoutesOf(plan.instances);
    return plan;
  };
  options.leader.replan_every = Seconds(10);
  FleetWorld world(options);
  world.Run(kStart + Seconds(60));
  EXPECT_TRUE(world.Settled());
  EXPECT_EQ(world.adopted(), 1);
  EXPECT_EQ(world.abandoned(), 0);
  EXPECT_EQ(world.SliceOf("server0").instances.size(), 6u);
  EXPECT_EQ(world.SliceOf("edge0").routes.size(), 2u);
}

// A thousand agents: how much they say, and how soon a plan is everywhere.
TEST(FleetWorld, AThousandNodesBeatOnceASecond) {
  int reports = 0;
  int orders = 0;
  FleetWorldOptions options{.seed = 3, .servers = 20, .edges = 980};
  options.faults = options.transcript = false;
  options.on_report = [&](const FromNode&) { ++reports; };
  options.on_order = [&](const ToNode&) { ++orders; };
  options.planning = [](const FleetInput& input) -> Expected<FleetPlan> {
    FleetPlan plan;
    for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
      for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
        plan.instances.push_back({FleetPipelineId{p}, FleetStageId{s}, DeviceId{p % 20}});
      }
    }
    plan.routes = RoutesOf(plan.instances);
    return plan;
  };
  FleetWorld world(options);
  world.Run(kStart + Seconds(20));
  EXPECT_TRUE(world.Settled());
  const int before = reports;
  const int orders_before = orders;
  world.Run(kStart + Seconds(30));
  EXPECT_EQ(reports - before, 10'000);
  EXPECT_EQ(orders - orders_before, 0);
}

}  // namespace
}  // namespace tactus
