#include "platform/cpu_affinity.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AssignCores, GivesLanesTheLastCoresAndTheRestToOthers) {
  const CpuAffinity plan = AssignCores({0, 1, 2, 5}, 2);
  EXPECT_THAT(plan.lanes, ElementsAre(ElementsAre(5), ElementsAre(2)));
  EXPECT_THAT(plan.others, ElementsAre(0, 1));
}

TEST(AssignCores, GivesALaneAsManyCoresAsItHasSlots) {
  const CpuAffinity plan = AssignCores({0, 1, 2, 3, 4}, 2, 2);
  EXPECT_THAT(plan.lanes, ElementsAre(ElementsAre(3, 4), ElementsAre(1, 2)));
  EXPECT_THAT(plan.others, ElementsAre(0));
}

TEST(AssignCores, PinsNothingWhereNoCoreWouldBeLeft) {
  for (const CpuAffinity& plan :
       {AssignCores({0, 1}, 2), AssignCores({0, 1}, 1, 2), AssignCores({}, 1)}) {
    EXPECT_THAT(plan.lanes, IsEmpty());
    EXPECT_THAT(plan.others, IsEmpty());
    EXPECT_THAT(plan.lane(0), IsEmpty());
  }
}

// Without this, I/O threads would interrupt the batches of lanes that have all cores.
TEST(WaitForTurns, IsOfTheCallingThreadAlone) {
  const int ours = sched_getscheduler(0);
  int kind = -1;
  std::thread([&kind] {
    WaitForTurns();
    kind = sched_getscheduler(0);
  }).join();
  EXPECT_EQ(kind, SCHED_BATCH);
  EXPECT_EQ(sched_getscheduler(0), ours);
}

}  // namespace
}  // namespace tactus
