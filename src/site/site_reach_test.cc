// Without this a probe could find a model ready whose calls wait for a worker until they are late.
#include "site/site_reach.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TimePoint ReachAt(std::int64_t ms) { return kStart + Millis(ms); }

WorkerModel ServedModel(std::string name, std::int64_t version = 1) {
  WorkerModel model;
  model.spec.name = std::move(name);
  model.spec.version = version;
  return model;
}

TEST(SiteReachTest, NothingIsReachedBeforeASchedulerHasToldOfWorkers) {
  SiteReach reach;
  EXPECT_EQ(reach.WhyNot(ReachAt(0)), "no scheduler answers");
  EXPECT_EQ(reach.WhyNot(ReachAt(0), "a", -1), "no scheduler answers");
  reach.Heard(ReachAt(10));
  EXPECT_EQ(reach.WhyNot(ReachAt(10)), "no worker serves");
  EXPECT_EQ(reach.WhyNot(ReachAt(10), "a", -1), "no worker serves");
  reach.Serve({ServedModel("a")});
  EXPECT_EQ(reach.WhyNot(ReachAt(10)), std::nullopt);
  EXPECT_EQ(reach.WhyNot(ReachAt(10), "a", -1), std::nullopt);
}

TEST(SiteReachTest, AModelIsReachedWhileSomeWorkerServesItsVersion) {
  SiteReach reach;
  reach.Heard(ReachAt(0));
  reach.Serve({ServedModel("a"), ServedModel("b", 3)});
  EXPECT_EQ(reach.WhyNot(ReachAt(1), "b", -1), std::nullopt);
  EXPECT_EQ(reach.WhyNot(ReachAt(1), "b", 3), std::nullopt);
  EXPECT_EQ(reach.WhyNot(ReachAt(1), "b", 2), "the workers of the site serve version 3");
  EXPECT_EQ(reach.WhyNot(ReachAt(1), "c", -1), "no worker of the site serves it");
  reach.Serve({ServedModel("a")});  // the last worker with b is gone
  EXPECT_EQ(reach.WhyNot(ReachAt(2)), std::nullopt);
  EXPECT_EQ(reach.WhyNot(ReachAt(2), "a", 1), std::nullopt);
  EXPECT_EQ(reach.WhyNot(ReachAt(2), "b", 3), "no worker of the site serves it");
  reach.Serve({ServedModel("a"), ServedModel("b", 3)});
  EXPECT_EQ(reach.WhyNot(ReachAt(3), "b", 3), std::nullopt);
}

TEST(SiteReachTest, ATakeOverIsNoSilence) {
  SiteReach reach;
  reach.Serve({ServedModel("a")});
  reach.Heard(ReachAt(0));
  EXPECT_EQ(reach.WhyNot(ReachAt(1000), "a", -1), std::nullopt);
  EXPECT_EQ(reach.WhyNot(ReachAt(1001), "a", -1), "no scheduler answers");
  EXPECT_EQ(reach.WhyNot(ReachAt(1001)), "no scheduler answers");
  reach.Heard(ReachAt(1500));
  EXPECT_EQ(reach.WhyNot(ReachAt(1500), "a", -1), std::nullopt);
}

}  // namespace
}  // namespace tactus
