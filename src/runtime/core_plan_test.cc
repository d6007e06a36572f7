#include "runtime/core_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PlanCores, GivesLanesTheLastCoresAndTheRestToOthers) {
  const CorePlan plan = PlanCores({0, 1, 2, 5}, 2);
  EXPECT_THAT(plan.lanes, ElementsAre(ElementsAre(5), ElementsAre(2)));
  EXPECT_THAT(plan.others, ElementsAre(0, 1));
}

TEST(PlanCores, GivesALaneAsManyCoresAsItHasSlots) {
  const CorePlan plan = PlanCores({0, 1, 2, 3, 4}, 2, 2);
  EXPECT_THAT(plan.lanes, ElementsAre(ElementsAre(3, 4), ElementsAre(1, 2)));
  EXPECT_THAT(plan.others, ElementsAre(0));
}

TEST(PlanCores, PinsNothingWhereNoCoreWouldBeLeft) {
  for (const CorePlan& plan : {PlanCores({0, 1}, 2), PlanCores({0, 1}, 1, 2), PlanCores({}, 1)}) {
    EXPECT_THAT(plan.lanes, IsEmpty());
    EXPECT_THAT(plan.others, IsEmpty());
    EXPECT_THAT(plan.lane(0), IsEmpty());
  }
}

}  // namespace
}  // namespace tactus
