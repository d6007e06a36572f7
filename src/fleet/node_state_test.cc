// Without these an agent could serve a plan that it does not hold on disk, obey a leader that has
// been replaced, or unload what others still send to.
#include "fleet/node_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/worker_routes.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kNow = kStart + Seconds(1);
const Incarnation kWho{5, 1};

FleetSlice Slice(PlanId id, const std::vector<std::string>& models) {
  FleetSlice slice{.id = id, .instances = {}, .routes = {}};
  for (const std::string& model : models) slice.instances.push_back({"p", "s", model});
  return slice;
}

template <class What>
void Order(NodeState& node, std::uint64_t term, What what) {
  node.Receive({"a", kWho, term, std::move(what)}, kNow);
}

NodeState Ready(std::vector<std::string> loaded = {}) {
  NodeState node({.name = "a"}, NodeKept{.who = kWho});
  node.WorkerUp(loaded, "h", "g");
  return node;
}

TEST(NodeState, LoadsThenServesThenPutsAway) {
  NodeState node = Ready();
  Order(node, 1, PrepareOrder{Slice({1, 1}, {"x", "y"})});
  EXPECT_THAT(node.Take(kNow).load, ElementsAre("x", "y"));
  Order(node, 1, CommitOrder{{1, 1}});
  EXPECT_TRUE(node.slice().id.none()) << "it is not loaded yet";
  node.Loaded("x");
  node.Loaded("y");
  EXPECT_TRUE(node.Report().prepared_ready);
  Order(node, 1, CommitOrder{{1, 1}});
  EXPECT_EQ(node.slice().id, (PlanId{1, 1}));

  Order(node, 1, PrepareOrder{Slice({1, 2}, {"y", "z"})});
  EXPECT_THAT(node.Take(kNow).load, ElementsAre("z"));
  node.Loaded("z");
  Order(node, 1, CommitOrder{{1, 2}});
  EXPECT_THAT(node.Take(kNow).unload, IsEmpty()) << "others may still send to x";
  Order(node, 1, RetireOrder{{1, 1}, {}});
  EXPECT_THAT(node.Take(kNow).unload, IsEmpty()) << "an old order";
  Order(node, 1, RetireOrder{{1, 2}, {"x"}});
  EXPECT_THAT(node.Take(kNow).unload, IsEmpty());
  Order(node, 1, RetireOrder{{1, 2}, {}});
  EXPECT_THAT(node.Take(kNow).unload, ElementsAre("x"));
}

TEST(NodeState, ObeysNoLeaderOfAnEarlierTermAndSaysWhichItObeys) {
  NodeState node = Ready({"x"});
  Order(node, 3, WelcomeOrder{});
  Order(node, 2, PrepareOrder{Slice({2, 9}, {"x"})});
  const NodeActions actions = node.Take(kNow);
  EXPECT_EQ(actions.keep->term, 3u) << "also after it starts again";
  EXPECT_EQ(ReportOf(actions.send.at(0)).term, 3u);
  EXPECT_TRUE(ReportOf(actions.send.at(0)).prepared.none());
  node.Receive({"a", {5, 2}, 4, WelcomeOrder{}}, kNow);
  node.Receive({"b", kWho, 4, WelcomeOrder{}}, kNow);
  EXPECT_EQ(node.Report().term, 3u) << "meant for others";
}

TEST(NodeState, GivesSignsOfLifeAsOftenAsItsLeaderSays) {
  NodeState node = Ready({"x"});
  node.Take(kNow);
  EXPECT_EQ(node.Next(), kNow + Seconds(1));
  Order(node, 3, WelcomeOrder{Millis(200)});
  node.Take(kNow);
  EXPECT_EQ(node.Next(), kNow + Millis(200));
  Order(node, 4, WelcomeOrder{});  // of an earlier version, which says nothing of it
  node.Take(kNow);
  EXPECT_EQ(node.Next(), kNow + Millis(200));
  Order(node, 5, WelcomeOrder{Nanos(1)});
  node.Take(kNow);
  EXPECT_EQ(node.Next(), kNow + Millis(100));
  Order(node, 6, WelcomeOrder{Seconds(1000)});
  node.Take(kNow);
  EXPECT_EQ(node.Next(), kNow + Seconds(1));
}

TEST(NodeState, ALatePrepareBringsNoAbandonedPlanBack) {
  NodeState node = Ready();
  const PrepareOrder prepare{Slice({1, 1}, {"x"})};
  Order(node, 1, prepare);
  node.Take(kNow);
  node.Loaded("x");
  Order(node, 1, AbandonOrder{.id = {1, 1}});
  EXPECT_THAT(node.Take(kNow).unload, ElementsAre("x"));
  Order(node, 1, prepare);
  EXPECT_TRUE(node.Report().prepared.none());
}

TEST(NodeState, RefusesWhatDoesNotLoadAndSaysWhy) {
  NodeState node = Ready();
  Order(node, 1, PrepareOrder{Slice({1, 1}, {"x"})});
  node.Take(kNow);
  node.LoadFailed("x", "no memory", kNow);
  EXPECT_EQ(node.Report().refused, (PlanId{1, 1}));
  EXPECT_EQ(node.Report().trouble, "model 'x': no memory");
}

TEST(NodeState, AWorkerThatDiesIsFilledAgain) {
  NodeState node = Ready({"x"});
  Order(node, 1, PrepareOrder{Slice({1, 1}, {"x"})});
  Order(node, 1, CommitOrder{{1, 1}});
  node.WorkerDown("signal 9", false);
  EXPECT_FALSE(node.Report().committed_ready);
  EXPECT_EQ(node.slice().id, (PlanId{1, 1}));
  node.WorkerUp({}, "h", "g");
  EXPECT_THAT(node.Take(kNow).load, ElementsAre("x"));
}

TEST(NodeState, ALaterLifeServesWhatWasKeptAndHoldsWhatItFinds) {
  NodeState node({.name = "a"},
                 NodeKept{.who = kWho, .term = 2, .slice = Slice({2, 4}, {"x"}), .held = {}});
  node.WorkerUp({"w", "x"}, "h", "g");
  NodeActions actions = node.Take(kNow);
  EXPECT_THAT(actions.load, IsEmpty());
  EXPECT_THAT(actions.unload, IsEmpty()) << "w is for a plan that the earlier life had prepared";
  EXPECT_TRUE(node.Report().committed_ready);
  EXPECT_EQ(std::get<NodeHello>(actions.send.at(0).what).slice.id, (PlanId{2, 4}));
}

TEST(NodeState, AsksAgainForWhatCouldNotBeWritten) {
  NodeState node = Ready({"x"});
  Order(node, 1, PrepareOrder{Slice({1, 1}, {"x"})});
  Order(node, 1, CommitOrder{{1, 1}});
  EXPECT_TRUE(node.Take(kNow).keep);
  EXPECT_TRUE(node.Take(kNow).keep);
  node.WasKept();
  EXPECT_FALSE(node.Take(kNow).keep);
}

FleetSlice Routed(PlanId id, const std::vector<std::string>& nodes) {
  FleetSlice slice{.id = id, .instances = {}, .routes = {{"cam", "more", "x", {}}}};
  for (const std::string& node : nodes) slice.routes[0].to.push_back({node, 1});
  return slice;
}

// It must know at COMMIT where to send, keep it over a restart, and follow those who move.
TEST(NodeState, KnowsWhereItSends) {
  NodeState node = Ready();
  Order(node, 1, PrepareOrder{Routed({1, 1}, {"b", "c"})});
  Order(node, 1, CommitOrder{{1, 1}, {{"b", "h:1"}, {"c", "h:2"}, {"d", "h:3"}}});
  const std::vector<PeerPlace> both = {{"b", "h:1"}, {"c", "h:2"}};
  EXPECT_EQ(node.kept().peers, both) << "of others it needs nothing";
  EXPECT_EQ(node.Take(kNow).keep->peers, both);
  EXPECT_EQ(node.Report().peers, SumOf(both));
  // A leader that does not know b yet.
  Order(node, 2, PeersOrder{{{"c", "h:9"}}});
  EXPECT_EQ(node.kept().peers, (std::vector<PeerPlace>{{"b", "h:1"}, {"c", "h:9"}}));
  EXPECT_NE(node.Report().peers, SumOf(both));

  const WorkerRoutes routes = RoutesOf(node.kept(), "c");
  ASSERT_EQ(routes.routes.size(), 1u);
  EXPECT_EQ(routes.plan, (PlanId{1, 1}));
  EXPECT_EQ(routes.routes[0].to,
            (std::vector<WorkerTarget>{{"b", "h:1", 1, false}, {"c", "", 1, true}}));
  Order(node, 2, PrepareOrder{Routed({2, 2}, {"c"})});
  Order(node, 2, CommitOrder{{2, 2}, {}});
  EXPECT_EQ(node.kept().peers, (std::vector<PeerPlace>{{"c", "h:9"}}));
}

// Its worker serves pipelines by the routes: an agent that finds them there must not hold them as
// models of a plan, and unload them.
TEST(NodeState, APipelineThatItsWorkerServesIsNoModel) {
  NodeState node({.name = "a"}, NodeKept{.who = kWho, .slice = Routed({1, 1}, {"b"}), .held = {}});
  node.WorkerUp({"cam", "w"}, "h", "g", "p");
  EXPECT_THAT(node.kept().held, ElementsAre("w"));
  EXPECT_EQ(node.Report().peer, "p");
  Order(node, 1, RetireOrder{{1, 1}, {}});
  EXPECT_THAT(node.Take(kNow).unload, ElementsAre("w"));
}

}  // namespace
}  // namespace tactus
