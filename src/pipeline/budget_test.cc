// Stages that get too little of the SLO miss their deadlines while others have time to spare.
#include "pipeline/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;

PipelineGraph Graph(std::vector<StageDeclaration> stages) {
  auto graph = PipelineGraph::Make(stages);
  EXPECT_TRUE(graph) << graph.error().message;
  return *std::move(graph);
}

// 0 -> 1 -> 3, and 0 -> 2 -> 3.
PipelineGraph Diamond() { return Graph({{"a"}, {"b", {"a"}}, {"c", {"a"}}, {"d", {"b", "c"}}}); }

TEST(Budget, StatedOnesAddUpAlongTheLongestPath) {
  const std::vector<Duration> stated = {Millis(10), Millis(20), Millis(5), Millis(7)};
  const std::vector<Duration> deadlines = DeadlinesByBudget(Diamond(), stated);
  EXPECT_THAT(deadlines, ElementsAre(Millis(10), Millis(30), Millis(15), Millis(37)));
  // The short branch's stage is given what was stated, the join what is left after the long one.
  EXPECT_EQ(BudgetsOf(Diamond(), deadlines), stated);
}

TEST(Budget, AChainIsDividedAsItsLatenciesAre) {
  const auto chain = Graph({{"a"}, {"b", {"a"}}, {"c", {"b"}}});
  EXPECT_THAT(DeadlinesByLatency(chain, std::vector{Millis(1), Millis(2), Millis(7)}, Millis(100)),
              ElementsAre(Millis(10), Millis(30), Millis(100)));
}

TEST(Budget, AShortBranchHasTheTimeOfTheLongOne) {
  const std::vector<Duration> latency = {Millis(10), Millis(30), Millis(5), Millis(10)};
  // Through c the longest path is 25: its deadline is 15/25 of the SLO, where b's is 40/50.
  const auto deadlines = DeadlinesByLatency(Diamond(), latency, Millis(100));
  EXPECT_THAT(deadlines, ElementsAre(Millis(20), Millis(80), Millis(60), Millis(100)));
  EXPECT_THAT(BudgetsOf(Diamond(), deadlines),
              ElementsAre(Millis(20), Millis(60), Millis(40), Millis(20)));
  // Last stages of any branch have until the SLO.
  const auto fan = Graph({{"a"}, {"b", {"a"}}, {"c", {"a"}}});
  EXPECT_THAT(DeadlinesByLatency(fan, std::vector{Millis(10), Millis(40), Millis(5)}, Millis(100)),
              ElementsAre(Millis(20), Millis(100), Millis(100)));
}

TEST(Budget, TheLongestPathIsTheSlowestNotTheOneOfMostStages) {
  const auto graph = Graph({{"slow"}, {"a"}, {"b", {"a"}}, {"c", {"b"}}, {"end", {"slow", "c"}}});
  const std::vector<Duration> latency = {Millis(9), Millis(1), Millis(2), Millis(3), Millis(4)};
  const auto path = LongestPath(graph, latency);
  EXPECT_THAT(path, ElementsAre(StageId{0}, StageId{4}));
  EXPECT_EQ(PathLength(path, latency), Millis(13));
}

TEST(Budget, WhatIsLeftIsDividedByWhatIsNeeded) {
  const std::vector<Duration> latency = {Millis(10), Millis(30), Millis(5), Millis(10)};
  const auto after = LeastAfter(Diamond(), latency);
  EXPECT_THAT(after, ElementsAre(Millis(40), Millis(10), Millis(10), Millis(0)));
  const TimePoint now = kStart + Millis(50);
  EXPECT_EQ(Redivide(now, now + Millis(100), latency[0], after[0]), now + Millis(20));
  EXPECT_EQ(Redivide(now, now + Millis(20), latency[1], after[1]), now + Millis(15));
  // The last stage has all of it, and of nothing there is nothing to divide.
  EXPECT_EQ(Redivide(now, now + Millis(20), latency[3], after[3]), now + Millis(20));
  EXPECT_EQ(Redivide(now, now - Millis(1), latency[1], after[1]), now - Millis(1));
}

// What budget.h promises of every graph.
TEST(Budget, OfRandomGraphsIsEnoughWhereverTheLongestPathFits) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::Stream(seed, "budgets");
    std::vector<StageDeclaration> stages;
    std::vector<Duration> latency;
    const std::size_t count = 1 + rng.Below(12);
    for (std::size_t s = 0; s < count; ++s) {
      StageDeclaration& stage = stages.emplace_back();
      stage.name = std::to_string(s);
      for (std::size_t other = 0; other < s; ++other) {
        if (rng.Below(3) == 0) stage.after.push_back(std::to_string(other));
      }
      latency.push_back(Micros(1 + static_cast<std::int64_t>(rng.Below(50'000))));
    }
    const PipelineGraph graph = Graph(stages);
    const Duration longest = PathLength(LongestPath(graph, latency), latency);
    const Duration slo = longest + Micros(static_cast<std::int64_t>(rng.Below(20'000)));
    const auto deadlines = DeadlinesByLatency(graph, latency, slo);
    const auto budgets = BudgetsOf(graph, deadlines);
    for (std::size_t s = 0; s < count; ++s) {
      const StageId id{static_cast<StageId::rep>(s)};
      EXPECT_GE(budgets[s], latency[s] - Nanos(2));  // two roundings
      for (const StageId other : graph.before(id)) {
        EXPECT_LT(deadlines[other.value()], deadlines[s]);
      }
      if (graph.next(id).empty()) {
        EXPECT_EQ(deadlines[s], slo);
      }
    }
  }
}

}  // namespace
}  // namespace tactus
