#include "cluster/controller/cluster_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using testing::HasSubstr;
using testing::Not;

LeaderView::Node NodeOf(const std::string& name, Standing standing, PlanId committed, bool ready) {
  LeaderView::Node node{.name = name, .standing = standing};
  node.report.committed = committed;
  node.report.committed_ready = ready;
  return node;
}

// Otherwise `tactus cluster up` would hand out a cluster of which a part does not serve, or wait
// for a machine that is away.
TEST(ClusterTextTest, AllServeOnceThoseThatAreHereServeThePlan) {
  const PlanId plan{.term = 1, .epoch = 2};
  LeaderView view{.term = 1};
  EXPECT_FALSE(AllServe(view)) << "there is no plan";
  view.serving = plan;
  view.nodes = {NodeOf("a", Standing::kAlive, plan, true), NodeOf("b", Standing::kAway, {}, false)};
  EXPECT_TRUE(AllServe(view));
  view.nodes[0].report.committed_ready = false;
  EXPECT_FALSE(AllServe(view));
  view.nodes[0] = NodeOf("a", Standing::kAlive, {.term = 1, .epoch = 1}, true);
  EXPECT_FALSE(AllServe(view)) << "it serves the plan before";
}

TEST(ClusterTextTest, TheTableSaysWhatHoldsANodeBack) {
  LeaderView view{.term = 3};
  EXPECT_THAT(ClusterTable({}), HasSubstr("the controller gathers its nodes"));
  view.serving = {.term = 3, .epoch = 1};
  view.rolling = {.term = 3, .epoch = 2};
  view.phase = "prepares";
  view.nodes = {NodeOf("a", Standing::kAlive, {}, false)};
  view.nodes[0].report.trouble = "no disk";
  EXPECT_THAT(ClusterTable(view), HasSubstr("term 3, serving plan 3.1, plan 3.2 prepares\n"));
  EXPECT_THAT(ClusterTable(view), HasSubstr("no disk"));
  view.nodes[0].left_out = "too slow";
  EXPECT_THAT(ClusterTable(view), HasSubstr("left out: too slow"));
  EXPECT_THAT(ClusterTable(view), Not(HasSubstr("no disk")));
  view.rolling = view.serving;
  EXPECT_THAT(ClusterTable(view), Not(HasSubstr("prepares")));
}

}  // namespace
}  // namespace tactus
