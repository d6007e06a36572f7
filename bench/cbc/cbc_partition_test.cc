// The local search against an exact solver that nobody here wrote: without this, both the search
// and the test that tries all partitions could share one misreading of the paper's equations.
#include "cbc/cbc_partition.h"

#include <string>

#include <gtest/gtest.h>

#include "planners/subcluster/partition_search.h"
#include "planners/subcluster/partition_testing.h"

namespace tactus {
namespace {

constexpr double kAmpleSeconds = 600;  // small ones take milliseconds

TEST(CbcPartition, AgreesWithTheSearchOnSmallProblems) {
  int feasible = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PartitionProblem problem = RandomPartitionProblem(seed);
    const auto exact = SolvePartitionByCbc(problem, kAmpleSeconds);
    const auto found = SearchPartition(problem, {.seed = seed, .most_trials = 200'000});
    ASSERT_EQ(exact.has_value(), found.has_value())
        << (exact ? found.error().message : exact.error().message);
    if (!exact) continue;
    ++feasible;
    EXPECT_TRUE(exact->optimal);
    EXPECT_EQ(BrokenLimit(problem, exact->found.partition), "");
    EXPECT_NEAR(exact->found.score.objective, found->score.objective, 1e-6);
  }
  EXPECT_GE(feasible, 12);
}

// Too many partitions to try them all: 4 ^ 14.
TEST(CbcPartition, AgreesWithTheSearchWhereEnumerationEnds) {
  const PartitionProblem problem = LargePartitionProblem(3, 14, 4);
  const auto exact = SolvePartitionByCbc(problem, kAmpleSeconds);
  const auto found = SearchPartition(problem, {.most_trials = 1'000'000});
  ASSERT_TRUE(exact && found);
  ASSERT_TRUE(exact->optimal);
  EXPECT_NEAR(exact->found.score.objective, found->score.objective, 1e-6);
}

}  // namespace
}  // namespace tactus
