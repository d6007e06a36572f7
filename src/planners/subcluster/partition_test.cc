// Without these a plan could overfill a backend, or call a partition good that is not: scores by
// hand, every limit, and answers held against all partitions there are.
#include "planners/subcluster/partition.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "planners/subcluster/partition_search.h"
#include "planners/subcluster/partition_testing.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PartitionProblem FourModels() {
  return {.models = {{"a", 30, 100, 10}, {"b", 10, 300, 20}, {"c", 20, 200, 5}, {"d", 40, 200, 30}},
          .sub_clusters = 2};
}

// Eq. 3 to 7 and A.2's imbalance by hand.
TEST(Partition, ScoresAsThePaperDefines) {
  PartitionProblem problem = FourModels();
  const Partition partition = {0, 0, 1, 1};
  const auto loads = LoadsOf(problem, partition);
  EXPECT_DOUBLE_EQ(loads[0].rate_rps, 40);
  EXPECT_DOUBLE_EQ(loads[1].rate_rps, 60);
  EXPECT_DOUBLE_EQ(loads[0].memory_mb(),
                   400 + 20);  // Eq. 5: the largest dynamic memory, not the sum
  EXPECT_DOUBLE_EQ(loads[1].memory_mb(), 400 + 30);
  PartitionScore score = ScoreOf(problem, partition);
  EXPECT_DOUBLE_EQ(score.rate_gap, 0.2);
  EXPECT_DOUBLE_EQ(score.memory_gap, 0);
  EXPECT_DOUBLE_EQ(score.rate_imbalance, 0.4);
  EXPECT_DOUBLE_EQ(score.objective, 0.2);
  EXPECT_TRUE(score.KeepsLimits(problem));

  problem.memory_weight = 3;
  score = ScoreOf(problem, {0, 1, 1, 0});  // rates 70 and 30, memory 300 and 500
  EXPECT_DOUBLE_EQ(score.objective, 0.4 + 3 * 0.25);
  EXPECT_DOUBLE_EQ(score.memory_imbalance, 0.5);
}

// Eq. 10: what moves is what has a place to leave.
TEST(Partition, CountsMoves) {
  PartitionProblem problem = FourModels();
  problem.models[1].move_cost = 5;
  problem.previous = {0, 0, kNowhere, 1};
  const PartitionScore score = ScoreOf(problem, {0, 1, 1, 0});
  EXPECT_EQ(score.moved, 2);
  EXPECT_DOUBLE_EQ(score.cost, 6);
  problem.most_cost = 5;
  EXPECT_FALSE(score.KeepsLimits(problem));
  EXPECT_THAT(BrokenLimit(problem, {0, 1, 1, 0}),
              HasSubstr("2 models moved at a cost of 6, over 5"));
}

std::string Refusal(const PartitionProblem& problem) {
  const auto valid = Validate(problem);
  const auto found = SearchPartition(problem, {});
  EXPECT_EQ(valid.has_value(), found.has_value()) << "the solver must refuse the same";
  return valid ? "" : valid.error().message;
}

TEST(Partition, SaysWhyNothingCanFit) {
  PartitionProblem problem = FourModels();
  problem.most_memory_mb = 310;
  EXPECT_EQ(Refusal(problem),
            "model 'b' needs 320 MB (static 300 + dynamic 20) and a backend has 310 MB; it fits "
            "nowhere, even alone");
  problem.most_memory_mb = 410;
  EXPECT_EQ(Refusal(problem),
            "the 4 models need 835 MB (static 800 + dynamic at least 35) and 2 sub-clusters of 410 "
            "MB hold 820 MB; at least 3 are needed");
  problem = FourModels();
  problem.most_rate_rps = 35;
  EXPECT_THAT(Refusal(problem), HasSubstr("model 'd' brings 40 r/s and a sub-cluster takes at most "
                                          "35 r/s"));
  problem.most_rate_rps = 45;
  EXPECT_THAT(Refusal(problem), HasSubstr("the 4 models bring 100 r/s and 2 sub-clusters take at "
                                          "most 90 r/s; at least 3 are needed"));
}

// Sums that fit and pairs that do not.
TEST(Partition, SaysWhichLargeModelsCannotShare) {
  PartitionProblem problem{.models = {{"a", 1, 600}, {"b", 1, 10}, {"c", 1, 700}, {"d", 1, 650}},
                           .sub_clusters = 2,
                           .most_memory_mb = 1200};
  EXPECT_EQ(Refusal(problem),
            "3 models, the least of them 'd' (650 MB) and 'a' (600 MB), are too large for any two "
            "to share a backend of 1200 MB, and there are 2 sub-clusters");
  for (PartitionModel& model : problem.models) std::swap(model.rate_rps, model.static_mb);
  problem.most_memory_mb = kNoLimit;
  problem.most_rate_rps = 1200;
  EXPECT_THAT(Refusal(problem), AllOf(HasSubstr("'d' (650 r/s) and 'a' (600 r/s)"),
                                      HasSubstr("bring too much for any two")));
}

TEST(Partition, RefusesNumbersThatMakeNoSense) {
  const auto refusal = [](auto change) {
    PartitionProblem problem = FourModels();
    change(problem);
    return Refusal(problem);
  };
  EXPECT_THAT(refusal([](auto& p) { p.models.clear(); }), HasSubstr("no model"));
  EXPECT_THAT(refusal([](auto& p) { p.sub_clusters = 0; }), HasSubstr("at least one"));
  EXPECT_THAT(refusal([](auto& p) { p.models[2].rate_rps = -1; }),
              HasSubstr("model 'c': rate_rps is -1; it must be 0 or more"));
  EXPECT_THAT(refusal([](auto& p) { p.models[0].static_mb = kNoLimit; }), HasSubstr("static_mb"));
  EXPECT_THAT(refusal([](auto& p) { p.models[0].dynamic_mb = 0.0 / 0.0; }),
              HasSubstr("dynamic_mb"));
  EXPECT_THAT(refusal([](auto& p) { p.most_memory_mb = 0; }), HasSubstr("more than 0"));
  EXPECT_THAT(refusal([](auto& p) { p.memory_weight = -1; }), HasSubstr("weight of memory"));
  EXPECT_THAT(refusal([](auto& p) {
                p.previous = {0, 1};
              }),
              HasSubstr("has 2 models and this one 4"));
  EXPECT_THAT(refusal([](auto& p) {
                p.previous = {0, 1, 2, 0};
              }),
              HasSubstr("was in sub-cluster 2"));
}

// Sums and pairs fit, and yet nothing does: three of 400, 300 and 270 MB into two of 900.
TEST(PartitionSearch, NamesWhatIsTooMuchInTheClosest) {
  const PartitionProblem problem{
      .models = {{"a", 1, 400}, {"b", 1, 400}, {"c", 1, 400}, {"d", 1, 300}, {"e", 1, 270}},
      .sub_clusters = 2,
      .most_memory_mb = 900};
  ASSERT_TRUE(Validate(problem));
  for (const auto& found : {SearchPartition(problem, {.most_trials = 20'000}),
                            DrawPartition(problem, {.most_trials = 2000})}) {
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(
        found.error().message,
        AllOf(HasSubstr("no partition of 5 models onto 2 sub-clusters"),
              HasSubstr("3 models of 970 MB (static 970 + dynamic 0) in backends of 900 MB"),
              HasSubstr("(400 MB), 'd' (300 MB), 'e' (270 MB)"), HasSubstr("more sub-clusters")));
  }
}

// A model that is alone at home cannot stay: the new one would not fit beside the others.
TEST(PartitionSearch, SaysThatTheBoundOnMovesIsInTheWay) {
  PartitionProblem problem{.models = {{"a", 1, 500}, {"b", 1, 500}, {"new", 1, 900}},
                           .sub_clusters = 2,
                           .most_memory_mb = 1000,
                           .previous = {0, 1, kNowhere},
                           .most_cost = 0};
  const auto found = SearchPartition(problem, {.most_trials = 20'000});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("moving more than 0 may help"));
  problem.most_cost = 1;
  EXPECT_TRUE(SearchPartition(problem, {.most_trials = 20'000}));
}

// Every partition of small problems, with and without limits and a previous one.
TEST(PartitionSearch, FindsTheBestOfAllPartitions) {
  int feasible = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PartitionProblem problem = RandomPartitionProblem(seed);
    const auto best = BestOfAllPartitions(problem);
    const auto found = SearchPartition(problem, {.seed = seed, .most_trials = 200'000});
    ASSERT_EQ(found.has_value(), best.has_value())
        << (found ? "found where there is none" : found.error().message);
    if (!best) continue;
    ++feasible;
    EXPECT_TRUE(found->score.KeepsLimits(problem));
    EXPECT_EQ(BrokenLimit(problem, found->partition), "");
    EXPECT_NEAR(found->score.objective, ScoreOf(problem, *best).objective, 1e-9);
  }
  EXPECT_GE(feasible, 12);
}

TEST(PartitionSearch, SameSeedAndTrialsSamePartition) {
  const PartitionProblem problem = LargePartitionProblem(7, 60, 5);
  const PartitionSearchOptions options{.seed = 3, .most_trials = 50'000};
  const auto one = SearchPartition(problem, options);
  const auto two = SearchPartition(problem, options);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->partition, two->partition);
  EXPECT_EQ(one->trials, 50'000);
  const auto drawn = DrawPartition(problem, {.seed = 3, .most_trials = 500});
  ASSERT_TRUE(drawn);
  EXPECT_EQ(drawn->partition, DrawPartition(problem, {.seed = 3, .most_trials = 500})->partition);
  EXPECT_GT(drawn->score.objective, 3 * one->score.objective) << "chance is as good as the search";
}

// One descent of 60 models settles; where it settles, others find better.
TEST(PartitionSearch, DescendsAgainFromElsewhere) {
  const PartitionProblem problem = LargePartitionProblem(7, 60, 5);
  const auto one = SearchPartition(problem, {.seed = 3, .patience = 4});
  const auto many = SearchPartition(problem, {.seed = 3, .patience = 4, .descents = 12});
  ASSERT_TRUE(one && many);
  EXPECT_GT(many->trials, one->trials);
  EXPECT_LT(many->score.objective, one->score.objective);
  EXPECT_TRUE(many->score.KeepsLimits(problem));
  EXPECT_EQ(BrokenLimit(problem, many->partition), "");
}

// Shaken partitions keep the bound on moves, too.
TEST(PartitionSearch, DescendsAgainWithinTheLimits) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PartitionProblem problem = RandomPartitionProblem(seed);
    const auto found = SearchPartition(problem, {.patience = 2, .descents = 3});
    if (!found) continue;
    EXPECT_TRUE(found->score.KeepsLimits(problem));
    EXPECT_EQ(BrokenLimit(problem, found->partition), "");
  }
}

TEST(PartitionSearch, EndsWhenToldTo) {
  const PartitionProblem problem = LargePartitionProblem(7, 60, 5);
  std::vector<PartitionProgress> seen;
  const auto found = SearchPartition(problem, {}, [&](const PartitionProgress& progress) {
    seen.push_back(progress);
    return seen.size() == 5;
  });
  ASSERT_TRUE(found);
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(found->trials, seen.back().trials);
  EXPECT_TRUE(seen.back().within_limits);
  EXPECT_LE(seen.back().objective, seen.front().objective);
  EXPECT_NEAR(found->score.objective, seen.back().objective, 1e-9);
}

// Disruption: as many models move as may, and the more may the better.
TEST(PartitionSearch, MovesNoMoreThanItMay) {
  PartitionProblem problem = LargePartitionProblem(5, 120, 6);
  problem.previous = SearchPartition(problem, {.most_trials = 50'000})->partition;
  // The load changes: every fourth model's rate trebles, and two models are new.
  for (std::size_t i = 0; i < problem.models.size(); i += 4) problem.models[i].rate_rps *= 3;
  problem.previous[8] = problem.previous[9] = kNowhere;
  double before = kNoLimit;
  for (const int most : {0, 2, 8, 32}) {
    problem.most_cost = most;
    const auto found = SearchPartition(problem, {.most_trials = 200'000});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_LE(found->score.moved, most);
    EXPECT_LT(found->score.objective, 0.9 * before) << most << " moves";
    before = found->score.objective;
  }
  EXPECT_LT(before, 0.02);
}

// Symphony's Appendix A.2 in small: the search against the baseline, with a part of the baseline's
// time.
TEST(PartitionSearch, IsFarMoreEvenThanDrawing) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PartitionProblem problem = LargePartitionProblem(seed);
    const auto searched = SearchPartition(problem, {.seed = seed, .most_trials = 200'000});
    const auto drawn = DrawPartition(problem, {.seed = seed, .most_trials = 2000});
    ASSERT_TRUE(searched && drawn);
    EXPECT_LT(searched->score.rate_imbalance, 0.05);
    EXPECT_LT(searched->score.memory_imbalance, 0.05);
    EXPECT_GT(drawn->score.rate_imbalance, 0.2);
    EXPECT_GT(drawn->score.memory_imbalance, 0.2);
  }
}

}  // namespace
}  // namespace tactus
