// Symphony's Appendix A.2 as a library: how evenly a solver spreads 800 models over 20
// sub-clusters. `RunPartitionConfiguration` gives one point of each curve of Figure 16; a caller
// that draws the figure runs it for many seeds and both solvers, and sorts the imbalance factors.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/subcluster/partition_search.h"

namespace tactus {

// The models of the paper's Tables 3 and 4 with the memory of their weights: four bytes for each of
// the parameters that their authors or Keras's list of applications publish. The paper does not say
// how much memory its models take.
std::vector<PartitionModel> PartitionZoo();

struct PartitionExperiment {
  int models = 800;
  int sub_clusters = 20;
  // Each of the models is a variant of one of the zoo, all equally likely; its rate is drawn from
  // an exponential distribution of this mean, which changes no imbalance.
  double mean_rate_rps = 100;
  // Ours: the paper names no limits. A backend of 11 GB, and 1 GB for whatever runs. Neither the
  // objective nor an imbalance counts dynamic memory.
  double most_memory_mb = 11264;
  double dynamic_mb = 1024;
};

// The same seed, the same problem. It may be infeasible for options unlike the default.
PartitionProblem MakePartitionProblem(const PartitionExperiment& experiment, std::uint64_t seed);

enum class PartitionSolver { kSearch, kRandom };

struct PartitionOutcome {
  PartitionSolver solver = PartitionSolver::kSearch;
  std::uint64_t seed = 0;
  FoundPartition found;  // found.score.rate_imbalance and .memory_imbalance are what is drawn
};

// Configuration `seed` under `solver`, which draws from the same seed: options.seed is not looked
// at. `stop` ends the solver, after ten seconds in the paper. Errors name the configuration.
Expected<PartitionOutcome> RunPartitionConfiguration(const PartitionExperiment& experiment,
                                                     PartitionSolver solver, std::uint64_t seed,
                                                     PartitionSearchOptions options,
                                                     const StopPartition& stop);

}  // namespace tactus
