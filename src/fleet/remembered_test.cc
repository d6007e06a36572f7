// Without these a controller that takes over would roll a plan out that nobody needs, or hold to
// one that its nodes do not serve.
#include "fleet/remembered.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/two_nodes_test.h"

namespace tactus {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct RecordedHistory final : FleetHistory {
  void OnLead(TimePoint, std::uint64_t term) override {
    lines.push_back("leads " + std::to_string(term));
  }
  void OnTakenUp(TimePoint, PlanId id) override {
    lines.push_back("taken up " + std::to_string(id.term) + "." + std::to_string(id.epoch));
  }
  void OnPlan(TimePoint, PlanId id, const FleetInput& input, const FleetPlan&) override {
    inputs.push_back(input);
    lines.push_back("plan " + std::to_string(id.term) + "." + std::to_string(id.epoch));
  }
  void OnRollout(TimePoint, PlanId id, bool adopted, const std::string&) override {
    lines.push_back((adopted ? "adopted " : "abandoned ") + std::to_string(id.epoch));
  }
  std::vector<std::string> lines;
  std::vector<FleetInput> inputs;
};

class RememberedTest : public ::testing::Test {
 protected:
  // The first leader's plan 1.1 serves on both nodes; then it dies.
  void SetUp() override {
    FleetLeader first(TwoNodes::Fleet(), TwoNodes::OnTheFirst, {}, {}, nodes.now);
    nodes.PassSeconds(first, 5);
    ASSERT_EQ(first.serving(), (PlanId{1, 1}));
    ASSERT_EQ(nodes.edge.slice().id, (PlanId{1, 1}));
    nodes.Connect();
  }

  FleetLeader Next(Remembered remembered) {
    LeaderOptions options;
    options.remembered = std::move(remembered);
    return FleetLeader(TwoNodes::Fleet(), TwoNodes::OnTheFirst, options, {.term = 1, .epoch = 1},
                       nodes.now, &told);
  }
  static RememberedPlan Plan(bool adopted) {
    return {.id = {1, 1},
            .nodes = {"server0", "edge0"},
            .links = TwoNodes::Fleet().links,
            .adopted = adopted};
  }

  TwoNodes nodes;
  RecordedHistory told;
};

TEST_F(RememberedTest, APlanThatAllNodesServeHoldsUnderTheNextLeader) {
  FleetLeader leader = Next({.plans = {Plan(true)}, .links = {}});
  nodes.PassSeconds(leader, 20);
  EXPECT_THAT(told.lines, ElementsAre("leads 2", "taken up 1.1"));
  EXPECT_EQ(leader.serving(), (PlanId{1, 1}));
  EXPECT_EQ(leader.View(nodes.now).rolling, (PlanId{1, 1}));
  EXPECT_EQ(leader.View(nodes.now).phase, "done");
  EXPECT_EQ(nodes.edge.kept().term, 2u);
  EXPECT_EQ(nodes.edge.slice().id, (PlanId{1, 1}));
}

TEST_F(RememberedTest, OneWhoseEndNobodySawIsAdoptedThen) {
  FleetLeader leader = Next({.plans = {Plan(false)}, .links = {}});
  nodes.PassSeconds(leader, 20);
  EXPECT_THAT(told.lines, ElementsAre("leads 2", "taken up 1.1", "adopted 1"));
}

TEST_F(RememberedTest, WithoutMemoryThereIsANewPlan) {
  FleetLeader leader = Next({});
  nodes.PassSeconds(leader, 20);
  EXPECT_THAT(told.lines, ElementsAre("leads 2", "plan 2.2", "adopted 2"));
}

TEST_F(RememberedTest, OneThatTheNodesDoNotServeIsPlannedAnew) {
  RememberedPlan other = Plan(true);
  other.id.epoch = 7;
  FleetLeader leader = Next({.plans = {other}, .links = {}});
  nodes.PassSeconds(leader, 20);
  EXPECT_THAT(told.lines, ElementsAre("leads 2", "plan 2.2", "adopted 2"));
}

TEST_F(RememberedTest, ANodeOfThePlanHasTimeToComeAndThenThereIsAPlanWithoutIt) {
  FleetLeader leader = Next({.plans = {Plan(true)}, .links = {}});
  nodes.edge_is_away = true;
  nodes.PassSeconds(leader, 8);
  EXPECT_THAT(told.lines, ElementsAre("leads 2"));
  nodes.edge_is_away = false;
  nodes.PassSeconds(leader, 5);
  EXPECT_THAT(told.lines, ElementsAre("leads 2", "taken up 1.1"));

  FleetLeader third(TwoNodes::Fleet(), TwoNodes::OnTheFirst,
                    {.remembered = {.plans = {Plan(true)}, .links = {}}}, {.term = 2, .epoch = 1},
                    nodes.now, &told);
  nodes.Connect();
  nodes.edge_is_away = true;
  nodes.PassSeconds(third, 20);
  EXPECT_THAT(told.lines, Contains("leads 3"));
  EXPECT_THAT(told.lines, Contains("plan 3.2"));
}

TEST_F(RememberedTest, ALinkIsAsItWasUntilItIsMeasured) {
  std::vector<FleetLink> links = TwoNodes::Fleet().links;
  links.at(0).mbps = 3.5;
  FleetLeader leader = Next({.plans = {}, .links = links});
  nodes.PassSeconds(leader, 10);
  ASSERT_EQ(told.inputs.size(), 1u);
  EXPECT_EQ(told.inputs.at(0).links.at(0).mbps, 3.5);

  nodes.edge.MeasureLinks({{"server0", {.mbps = 2, .rtt = Millis(30)}}});
  nodes.PassSeconds(leader, 400);  // of which 360 are the period of plans
  EXPECT_GT(nodes.now, kStart + Seconds(400));
  EXPECT_EQ(leader.View(nodes.now).nodes.at(0).links.at(0).reading.mbps, 2);
}

// A later term at a node must be known to who stands for leadership again.
TEST_F(RememberedTest, AnElectedLeaderWhoseTermIsOverKeepsTheLaterOne) {
  LeaderOptions options;
  options.term = 1;
  FleetLeader second(TwoNodes::Fleet(), TwoNodes::OnTheFirst, {}, {.term = 5, .epoch = 1},
                     nodes.now);
  nodes.PassSeconds(second, 5);  // term 6
  nodes.Connect();
  FleetLeader late(TwoNodes::Fleet(), TwoNodes::OnTheFirst, options, {}, nodes.now, &told);
  nodes.Pass(late, Seconds(1));
  EXPECT_TRUE(late.superseded());
  EXPECT_EQ(late.term(), 6u);
  EXPECT_THAT(told.lines, IsEmpty());
}

// Whatever dies, is lost or comes late: a leader that takes up a plan breaks nothing that a leader
// without memory keeps. What each has told is there for the next one, also of leaders that have
// been superseded.
struct SharedMemory final : FleetHistory {
  void OnTakenUp(TimePoint, PlanId) override { ++taken_up; }
  void OnPlan(TimePoint, PlanId id, const FleetInput& input, const FleetPlan&) override {
    RememberedPlan& plan = plans[id];
    plan = {.id = id, .nodes = {}, .links = input.links, .adopted = false};
    for (const FleetDevice& each : input.devices) plan.nodes.insert(each.name);
  }
  void OnRollout(TimePoint, PlanId id, bool adopted, const std::string&) override {
    if (adopted) plans[id].adopted = true;
    if (!adopted) plans.erase(id);
  }
  // The newest, and the newest that was adopted.
  Remembered Recall() const {
    Remembered remembered;
    if (!plans.empty()) remembered.plans.push_back(plans.rbegin()->second);
    const auto adopted = std::find_if(plans.rbegin(), plans.rend(),
                                      [](const auto& each) { return each.second.adopted; });
    if (adopted != plans.rend()) remembered.plans.push_back(adopted->second);
    return remembered;
  }
  std::map<PlanId, RememberedPlan> plans;
  int taken_up = 0;
};

TEST(FleetMemory, LeadersThatRememberHealAsWell) {
  int taken_up = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SharedMemory memory;
    FleetWorldOptions options{.seed = seed};
    options.leader.rollout.prepare_within = Seconds(15);
    options.leader.rollout.commit_within = Seconds(15);
    options.leader.replan_every = Seconds(12);
    options.leader.refused_for = Seconds(5);
    options.leader.forget_after = Seconds(100'000);
    options.history = &memory;
    options.remembered = [&memory] { return memory.Recall(); };
    FleetWorld world(options);
    world.Run(options.heal_at);
    const TimePoint bound = options.heal_at + Seconds(80);
    while (!world.Settled() && world.now() < bound && !HasFailure()) {
      world.Run(world.now() + Seconds(1));
    }
    ASSERT_TRUE(world.Settled()) << world.Tail();
    ASSERT_FALSE(HasFailure());
    taken_up += memory.taken_up;
  }
  EXPECT_GT(taken_up, 10);
}

}  // namespace
}  // namespace tactus
