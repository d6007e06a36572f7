// Coefficients that would have a neighbour quicken a batch would be taken for none at all, or
// worse.
#include "planners/gpulet/interference.h"

#include <gtest/gtest.h>

#include "planners/gpulet/gpulet_testing.h"

namespace tactus {
namespace {

TEST(Interference, NoNeighbourQuickensABatch) {
  TestProblem problem = MakeTestProblem({{.memory = 0.9}, {.memory = 0}}, 1, 1, {0.4, 0.6, 1});
  problem.input.profile = &problem.profile;
  const auto fault = [&](const InterferenceModel& interference) -> std::string {
    const Status sane = CheckPredictions(interference, problem.input);
    return sane ? "" : sane.error().message;
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({.c = {-0.119, 0.057, 0.456, 0.417, 0.873}}), "");  // 0.873 beside m1
  EXPECT_NE(fault({.c = {0, 0, 0, 0, 0.7}}), "");
  // Only beside m0, which uses 0.9 * 0.2 of the device's memory, in batches of 1.
  EXPECT_TRUE(fault({.c = {0, 0, 0, -5, 1}})
                  .starts_with("batches of 'm0' on 40 % of a device would take 0.1 times as long "
                               "beside 'm0' on the rest as alone"))
      << fault({.c = {0, 0, 0, -5, 1}});
  EXPECT_TRUE(fault({.c = {-10, 0, 20, -10, 1}})
                  .starts_with("batches of 'm1' on 40 % of a device would take -0.8 times as long "
                               "beside 'm0'"))
      << fault({.c = {-10, 0, 20, -10, 1}});
  problem.input.shares = {0.4, 1};  // no device is ever split
  EXPECT_EQ(fault({.c = {0, 0, 0, 0, 0.7}}), "");
}

}  // namespace
}  // namespace tactus
