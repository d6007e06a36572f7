// Small problems and their exact answers, for the tests of the solvers.
#pragma once

#include <optional>
#include <string>

#include "base/rng.h"
#include "planners/subcluster/partition.h"

namespace tactus {

// 2 or 3 sub-clusters and up to 8 models; some have limits, a previous partition, a bound on moves.
inline PartitionProblem RandomPartitionProblem(std::uint64_t seed) {
  Rng rng = Rng::Stream(seed, "small partition problem");
  PartitionProblem problem;
  problem.sub_clusters = 2 + static_cast<int>(rng.Below(2));
  const std::size_t models = 3 + rng.Below(6);
  double memory = 0;
  double rate = 0;
  for (std::size_t i = 0; i < models; ++i) {
    problem.models.push_back({.name = "m" + std::to_string(i),
                              .rate_rps = rng.Exponential(0.01),
                              .static_mb = 1 + static_cast<double>(rng.Below(500)),
                              .dynamic_mb = static_cast<double>(rng.Below(50)),
                              .move_cost = 1 + static_cast<double>(rng.Below(3))});
    memory += problem.models.back().static_mb;
    rate += problem.models.back().rate_rps;
  }
  if (rng.Below(2) == 0) problem.most_memory_mb = memory / problem.sub_clusters * 1.3 + 25;
  if (rng.Below(3) == 0) problem.most_rate_rps = rate / problem.sub_clusters * 1.5;
  if (rng.Below(3) == 0) problem.memory_weight = rng.Uniform() * 4;
  if (rng.Below(2) == 0) {
    for (std::size_t i = 0; i < models; ++i) {
      problem.previous.push_back(static_cast<int>(rng.Below(problem.sub_clusters + 1)) - 1);
    }
    problem.most_cost = static_cast<double>(rng.Below(6));
  }
  return problem;
}

// 800 models of very different sizes and rates onto 20 sub-clusters, or as many as are asked for.
inline PartitionProblem LargePartitionProblem(std::uint64_t seed, int models = 800,
                                              int sub_clusters = 20) {
  Rng rng = Rng::Stream(seed, "large partition problem");
  PartitionProblem problem{.sub_clusters = sub_clusters, .most_memory_mb = 11264};
  for (int i = 0; i < models; ++i) {
    problem.models.push_back({.name = "m" + std::to_string(i),
                              .rate_rps = rng.Exponential(0.01),
                              .static_mb = 10 + rng.Exponential(1.0 / 150),
                              .dynamic_mb = 1024});
  }
  return problem;
}

// By trying each of the sub_clusters ^ models partitions; nothing when none keeps the limits.
inline std::optional<Partition> BestOfAllPartitions(const PartitionProblem& problem) {
  std::optional<Partition> best;
  double least = kNoLimit;
  Partition partition(problem.models.size(), 0);
  for (;;) {
    const PartitionScore score = ScoreOf(problem, partition);
    if (score.KeepsLimits(problem) && score.objective < least) {
      least = score.objective;
      best = partition;
    }
    std::size_t i = 0;
    while (i < partition.size() && ++partition[i] == problem.sub_clusters) partition[i++] = 0;
    if (i == partition.size()) return best;
  }
}

}  // namespace tactus
