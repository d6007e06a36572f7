// The problem of partition.h as the mixed integer linear program of Symphony's Eq. 3 to 10, solved
// by COIN-OR's branch and cut: a cross-check of the local search, exact where it has the time.
// Built with -DTACTUS_WITH_CBC=ON only (Debian: coinor-libcbc-dev).
#pragma once

#include "base/expected.h"
#include "planners/subcluster/partition_search.h"

namespace tactus {

struct CbcPartition {
  FoundPartition found;  // .trials is 0
  bool optimal = false;  // proven, within the solver's tolerances; else the best in its time
};

// Fails like Validate; with kResourceExhausted when there is proven to be no partition within the
// limits, with kDeadlineExceeded when `seconds` (of one core) were not enough to find one.
Expected<CbcPartition> SolvePartitionByCbc(const PartitionProblem& problem, double seconds);

}  // namespace tactus
