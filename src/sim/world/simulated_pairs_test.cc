// What planners count on where lanes slow each other is fitted to these pairs.
#include "sim/world/simulated_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

class SimulatedPairsTest : public ::testing::Test {
 protected:
  Scenario scenario_ = *LoadScenario(SourcePath("scenarios/gpulets/equal.toml"));
  const ProfileFile profile_ = *LoadProfile(scenario_.profile);
};

// 10 pairs of five models, 5 x 5 batches, 5 ways to split a device, two sides each.
TEST_F(SimulatedPairsTest, AreAllPairsOfModelsBatchesAndSplits) {
  const auto samples = SimulatedPairs(scenario_, profile_);
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_EQ(samples->size(), 10u * 25 * 5 * 2);
  for (std::size_t i = 0; i < samples->size(); i += 2) {
    const InterferenceSample& one = (*samples)[i];
    const InterferenceSample& other = (*samples)[i + 1];
    ASSERT_EQ(one.own, other.other);
    ASSERT_EQ(one.other, other.own);
    ASSERT_GE(one.factor, 1);
  }
  const auto again = SimulatedPairs(scenario_, profile_);
  EXPECT_EQ(samples->back().factor, again->back().factor);
  scenario_.seed = 2;
  EXPECT_NE(samples->back().factor, SimulatedPairs(scenario_, profile_)->back().factor);
}

TEST_F(SimulatedPairsTest, NeedLanesThatShareADeviceAndSlowEachOther) {
  Scenario alone = scenario_;
  alone.models.resize(1);
  EXPECT_THAT(SimulatedPairs(alone, profile_).error().message, HasSubstr("no two models share"));
  scenario_.plan_shares.clear();
  EXPECT_THAT(SimulatedPairs(scenario_, profile_).error().message, HasSubstr("as 20,80"));
  scenario_.capacity.clear();
  EXPECT_THAT(SimulatedPairs(scenario_, profile_).error().message, HasSubstr("[contention]"));
}

}  // namespace
}  // namespace tactus
