// Whatever the fleet, each planner's plan is one that can be carried out, and the same again.
#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "planners/fleet_estimate.h"
#include "planners/fleet_registry.h"
#include "planners/fleet_testing.h"

namespace tactus {
namespace {

TEST(FleetPlanners, MakeValidPlansOfWhateverFleet) {
  for (int seed = 0; seed < CasesHere(400); ++seed) {
    Rng rng = Rng::Stream(static_cast<std::uint64_t>(seed), "fleet");
    const FleetInput input = RandomFleet(rng);
    if (!CheckFleet(input)) continue;
    for (const FleetPlannerInfo& planner : FleetPlanners()) {
      const auto plan = PlanFleet(planner.name, input);
      ASSERT_TRUE(plan) << plan.error().message;
      ASSERT_EQ(FaultOf(*plan, input, UseLimitOf(planner.name)), "")
          << planner.name << ", seed " << seed;
      if (seed % 50 == 0) {
        ASSERT_EQ(*plan, *PlanFleet(planner.name, input)) << "the same again";
      }
    }
  }
}

}  // namespace
}  // namespace tactus
