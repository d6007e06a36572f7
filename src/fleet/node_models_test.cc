// Without these a node could say that it is ready with other bytes than the leader's, or stop
// serving a model while another version of it is on its way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/node_state.h"
#include "fleet/rollout.h"
#include "fleet/slices.h"
#include "fleet/two_nodes_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimePoint kAt = kStart + Seconds(1);
const Incarnation kLife{5, 1};

// x by this digest; `pipeline`: and one that is routed here.
FleetSlice SliceOfX(PlanId id, const std::string& digest, bool pipeline = false) {
  FleetSlice slice{.id = id, .instances = {{"p", "s", "x"}}, .routes = {}};
  if (pipeline) slice.models.push_back({"p", "pipeline"});
  slice.models.push_back({"x", digest});
  return slice;
}

class NodeModelsTest : public ::testing::Test {
 protected:
  NodeModelsTest() { node.WorkerUp({}, "h", "g"); }

  template <class What>
  void Order(What what) {
    node.Receive({"a", kLife, 1, std::move(what)}, kAt);
  }
  NodeActions Take() {
    NodeActions actions = node.Take(kAt);
    if (actions.keep) node.WasKept();
    return actions;
  }
  // Serves x by the digest.
  void Serve(PlanId id, const std::string& digest) {
    Order(PrepareOrder{SliceOfX(id, digest)});
    Take();
    node.Placed("x");
    Take();
    node.Loaded("x");
    Order(CommitOrder{id});
    ASSERT_EQ(node.slice().id, id);
    Order(RetireOrder{id, {}});
    Take();
  }

  NodeState node{{.name = "a"}, NodeKept{.who = kLife}};
};

TEST_F(NodeModelsTest, LoadsWhatHasBeenPlacedAndIsReadyWithItsPipelines) {
  Order(PrepareOrder{SliceOfX({1, 1}, "one", true)});
  NodeActions actions = Take();
  EXPECT_THAT(actions.place, ElementsAre(ModelRef{"p", "pipeline"}, ModelRef{"x", "one"}));
  EXPECT_THAT(actions.load, IsEmpty());
  node.Placed("x");
  EXPECT_THAT(Take().load, ElementsAre("x"));
  node.Loaded("x");
  EXPECT_FALSE(node.Report().prepared_ready) << "its worker would not find the pipeline";
  node.Placed("p");
  EXPECT_TRUE(node.Report().prepared_ready);
  EXPECT_THAT(Take().load, IsEmpty()) << "nobody loads a pipeline";
  EXPECT_EQ(node.DigestsInUse(), (std::set<std::string>{"one", "pipeline"}));
}

TEST_F(NodeModelsTest, BytesThatAreRefusedLeaveTheOldOnesServing) {
  Serve({1, 1}, "one");
  Order(PrepareOrder{SliceOfX({1, 2}, "two")});
  EXPECT_THAT(Take().place, ElementsAre(ModelRef{"x", "two"}));
  EXPECT_TRUE(node.Report().committed_ready);
  node.PlaceFailed("x", "other bytes", kAt);
  EXPECT_EQ(node.Report().refused, (PlanId{1, 2}));
  EXPECT_EQ(node.Report().trouble, "model 'x': other bytes");
  EXPECT_TRUE(node.DigestsInUse().contains("one"));
  Order(AbandonOrder{.id = {1, 2}});
  const NodeActions actions = Take();
  EXPECT_THAT(actions.load, IsEmpty());
  EXPECT_THAT(actions.place, IsEmpty());
  EXPECT_TRUE(node.Report().committed_ready);
  EXPECT_FALSE(node.Report().failing);
}

TEST_F(NodeModelsTest, OtherBytesAreLoadedOverThoseThatServeAndBackAgain) {
  Serve({1, 1}, "one");
  Order(PrepareOrder{SliceOfX({1, 2}, "two")});
  Take();
  node.Placed("x");
  NodeActions actions = Take();
  EXPECT_THAT(actions.load, ElementsAre("x"));
  EXPECT_THAT(actions.keep->loaded, IsEmpty()) << "a life that ends now does not know";
  EXPECT_TRUE(node.Report().committed_ready) << "the worker serves one until it has two";
  EXPECT_FALSE(node.Report().prepared_ready);
  node.LoadFailed("x", "no memory", kAt);
  EXPECT_EQ(node.Report().trouble, "model 'x': no memory");
  EXPECT_TRUE(node.Report().committed_ready);
  Order(AbandonOrder{.id = {1, 2}});
  EXPECT_THAT(Take().load, IsEmpty()) << "it has never gone";

  Order(PrepareOrder{SliceOfX({1, 3}, "three")});
  EXPECT_THAT(Take().place, ElementsAre(ModelRef{"x", "three"}));
  node.Placed("x");
  Take();
  node.Loaded("x");
  EXPECT_TRUE(node.Report().prepared_ready);
  EXPECT_FALSE(node.Report().committed_ready);
  Order(AbandonOrder{.id = {1, 3}});
  EXPECT_THAT(Take().place, ElementsAre(ModelRef{"x", "one"}));
  node.Placed("x");
  EXPECT_THAT(Take().load, ElementsAre("x"));
  node.Loaded("x");
  EXPECT_TRUE(node.Report().committed_ready);
}

TEST_F(NodeModelsTest, WhatNobodyWantsAnyMoreIsStoppedOnce) {
  Order(PrepareOrder{SliceOfX({1, 1}, "one")});
  Take();
  Order(PrepareOrder{SliceOfX({1, 2}, "two")});
  NodeActions actions = Take();
  EXPECT_THAT(actions.stop, ElementsAre("x"));
  EXPECT_THAT(actions.place, IsEmpty()) << "one at a time";
  EXPECT_THAT(Take().stop, IsEmpty());
  node.PlaceFailed("x", "stopped", kAt);
  EXPECT_TRUE(node.Report().refused.none());
  EXPECT_THAT(Take().place, ElementsAre(ModelRef{"x", "two"}));
  Order(AbandonOrder{.id = {1, 2}});
  EXPECT_THAT(Take().stop, ElementsAre("x"));
  node.Placed("x");
  actions = Take();
  EXPECT_THAT(actions.stop, IsEmpty());
  EXPECT_THAT(actions.load, IsEmpty());
}

TEST_F(NodeModelsTest, APipelinesFolderOfOtherBytesIsNotReady) {
  Order(PrepareOrder{SliceOfX({1, 1}, "one", true)});
  Take();
  node.Placed("p");
  node.Placed("x");
  Take();
  node.Loaded("x");
  Order(CommitOrder{{1, 1}});
  FleetSlice next = SliceOfX({1, 2}, "one", true);
  next.models[0].digest = "another pipeline";
  Order(PrepareOrder{next});
  EXPECT_FALSE(node.Report().prepared_ready);
  Order(CommitOrder{{1, 2}});
  EXPECT_EQ(node.slice().id, (PlanId{1, 1}));
}

// Else a plan that was abandoned for its models would go on fetching them.
TEST_F(NodeModelsTest, WhatAnAbandonedPlanWantedIsStoppedWhileTheOldOneServes) {
  Serve({1, 1}, "one");
  Order(PrepareOrder{SliceOfX({1, 2}, "two")});
  Take();
  Order(AbandonOrder{.id = {1, 2}});
  EXPECT_THAT(Take().stop, ElementsAre("x"));
  Order(PrepareOrder{SliceOfX({1, 3}, "two")});
  EXPECT_THAT(Take().place, IsEmpty()) << "it has not ended yet";
  node.PlaceFailed("x", "stopped", kAt);
  EXPECT_TRUE(node.Report().refused.none());
  EXPECT_THAT(Take().place, ElementsAre(ModelRef{"x", "two"}));
  Order(AbandonOrder{.id = {1, 3}});
  Take();
  node.PlaceFailed("x", "stopped", kAt);
  const NodeActions actions = Take();
  EXPECT_THAT(actions.place, IsEmpty());
  EXPECT_TRUE(node.Report().committed_ready);
  EXPECT_EQ(node.Report().trouble, "");
  EXPECT_GT(node.Next(), kAt) << "there is nothing to do";
}

TEST_F(NodeModelsTest, ALaterLifeKnowsWhichBytesTheWorkerHas) {
  Serve({1, 1}, "one");
  const NodeKept kept = node.kept();
  EXPECT_THAT(kept.loaded, ElementsAre(ModelRef{"x", "one"}));
  NodeState later({.name = "a"}, kept);
  later.WorkerUp({"x"}, "h", "g");
  EXPECT_TRUE(later.Report().committed_ready);
  NodeActions actions = later.Take(kAt);
  EXPECT_THAT(actions.place, IsEmpty());
  EXPECT_THAT(actions.load, IsEmpty());
  later.WorkerDown("signal 9", false);
  EXPECT_THAT(later.Take(kAt).place, ElementsAre(ModelRef{"x", "one"})) << "while none is there";
  later.WorkerUp({}, "h", "g");
  later.Placed("x");
  EXPECT_THAT(later.Take(kAt).load, ElementsAre("x"));

  NodeKept unsure = kept;
  unsure.loaded.clear();
  NodeState other({.name = "a"}, unsure);
  other.WorkerUp({"x"}, "h", "g");
  EXPECT_THAT(other.Take(kAt).place, ElementsAre(ModelRef{"x", "one"}));
  EXPECT_FALSE(other.IsOwn("x"));
}

// A model that comes slowly must not have its plan abandoned while it comes.
TEST(ModelRollout, WaitsWhileModelsComeAndNotForEver) {
  RolloutOptions options;
  options.prepare_within = Seconds(10);
  Rollout rollout({{1, 1}, {{"a", SliceOfX({1, 1}, "one")}}, {{"a"}}}, options, kStart);
  TimePoint now = kStart;
  NodeReport report{.prepared = {1, 1}};
  for (int i = 0; i < 30; ++i) {
    now += Seconds(1);
    report.fetched += 5;
    rollout.Report("a", report, now);
    rollout.Step(now, false, {});
  }
  EXPECT_EQ(rollout.phase(), Rollout::Phase::kPreparing);
  for (int i = 0; i < 10; ++i) {
    now += Seconds(1);
    rollout.Report("a", report, now);
    rollout.Step(now, false, {});
  }
  EXPECT_EQ(rollout.phase(), Rollout::Phase::kAbandoned);
  EXPECT_THAT(rollout.why(), HasSubstr("10 s"));
}

// Else all would wait two minutes for a node whose worker does not start.
TEST(ModelRollout, DoesNotWaitForANodeWhoseWorkerDoesNotStayUp) {
  Rollout rollout({{1, 1}, {{"a", SliceOfX({1, 1}, "one")}}, {{"a"}}}, {}, kStart);
  NodeReport report{.prepared = {1, 1}, .trouble = "it did not start"};
  rollout.Report("a", report, kAt);
  EXPECT_EQ(rollout.phase(), Rollout::Phase::kPreparing);
  report.failing = true;
  rollout.Report("a", report, kAt);
  EXPECT_EQ(rollout.phase(), Rollout::Phase::kAbandoned);
  EXPECT_EQ(rollout.why(), "it did not start");
}

// By digests that change from one leader to the next.
struct LedByDigests : TwoNodes {
  FleetLeader Leader(std::uint64_t term, const std::map<std::string, std::string>& digests,
                     PlanId known = {}) {
    LeaderOptions options;
    if (!known.none()) {
      options.remembered.plans.push_back(
          {.id = known, .nodes = {"server0", "edge0"}, .links = Fleet().links, .adopted = true});
    }
    options.term = term;
    options.digests = digests;
    return FleetLeader(Fleet(), OnTheFirst, options, {}, now);
  }
};

TEST(ModelLeader, RollsOutModelsThatHaveChangedAndNoOthers) {
  LedByDigests nodes;
  FleetLeader first = nodes.Leader(1, {{"find", "f1"}, {"camera0", "c1"}, {"other", "o1"}});
  nodes.PassSeconds(first, 5);
  EXPECT_THAT(nodes.server.slice().models, ElementsAre(ModelRef{"find", "f1"}));
  EXPECT_THAT(nodes.edge.slice().models, ElementsAre(ModelRef{"camera0", "c1"}));
  const PlanId plan = first.serving();
  EXPECT_FALSE(plan.none());

  // Who takes over and remembers it keeps it with the same models, and without a repository.
  nodes.Connect();
  FleetLeader same = nodes.Leader(2, {{"find", "f1"}, {"camera0", "c1"}}, plan);
  nodes.PassSeconds(same, 15);
  EXPECT_EQ(same.serving(), plan);
  nodes.Connect();
  FleetLeader without = nodes.Leader(3, {}, plan);
  nodes.PassSeconds(without, 15);
  EXPECT_EQ(without.serving(), plan);
  nodes.Connect();
  FleetLeader changed = nodes.Leader(4, {{"find", "f2"}, {"camera0", "c1"}}, plan);
  nodes.PassSeconds(changed, 15);
  EXPECT_GT(changed.serving(), plan);
  EXPECT_THAT(nodes.server.slice().models, ElementsAre(ModelRef{"find", "f2"}));
  EXPECT_TRUE(nodes.server.Holds("find", "f2"));
}

}  // namespace
}  // namespace tactus
