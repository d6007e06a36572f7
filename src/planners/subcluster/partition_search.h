// Solvers for the problem of partition.h. They look at no clock: the caller's predicate ends them,
// so a number of trials and a seed give one answer, anywhere. bench/cbc has an exact one.
#pragma once

#include <cstdint>
#include <functional>

#include "base/expected.h"
#include "planners/subcluster/partition.h"

namespace tactus {

// How far a search is. Best so far: an objective is only that of a partition within the limits.
struct PartitionProgress {
  std::int64_t trials = 0;
  bool within_limits = false;
  double objective = 0;
};

// Asked now and then, every few thousand trials; true ends the search with the best so far.
using StopPartition = std::function<bool(const PartitionProgress&)>;

struct PartitionSearchOptions {
  std::uint64_t seed = 1;
  // Ends after this many trials: changes weighed, or for the random solver partitions drawn.
  std::int64_t most_trials = 1'000'000'000;
  // A descent of the local search ends after this many rounds in a row that found nothing better.
  int patience = 40;
  // Then it shakes the best partition and descends again, so often in all.
  int descents = 1;
};

struct FoundPartition {
  Partition partition;
  PartitionScore score;
  std::int64_t trials = 0;
};

// Local search: models are placed largest first where they fit best, or stay where they were; then
// rounds of annealing shift models or swap them, each from the best so far, with less and less
// disorder as it gets better. Where moves cost, a change that would cost too much takes others back
// home first. Fails like Validate, or with kResourceExhausted when no partition within the limits
// turned up: the message names what is over its limit in the closest one.
Expected<FoundPartition> SearchPartition(const PartitionProblem& problem,
                                         const PartitionSearchOptions& options,
                                         const StopPartition& stop = {});

// The paper's baseline (A.2): draws partitions uniformly, and keeps the best of those that keep the
// limits. It knows nothing of the previous partition but its bound, which it hardly ever keeps.
Expected<FoundPartition> DrawPartition(const PartitionProblem& problem,
                                       const PartitionSearchOptions& options,
                                       const StopPartition& stop = {});

}  // namespace tactus
