// Which models share which backends: the problem of Symphony's Appendix A.1 (Eq. 3 to 10) and what
// a solution is worth. Every backend of a sub-cluster holds all models of that sub-cluster, so that
// any of them can run any of these models.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

struct PartitionModel {
  std::string name;
  double rate_rps = 0;    // r_i
  double static_mb = 0;   // s_i: weights, held as long as the model is loaded
  double dynamic_mb = 0;  // d_i: while it runs; a backend runs one model at a time
  double move_cost = 1;   // of unloading it in one sub-cluster and loading it in another, 2 c_ij
};

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr int kNowhere = -1;

// The sub-cluster of each model, from 0.
using Partition = std::vector<int>;

struct PartitionProblem {
  std::vector<PartitionModel> models;
  int sub_clusters = 1;
  double most_rate_rps = kNoLimit;   // R_max of a sub-cluster
  double most_memory_mb = kNoLimit;  // S_max of a backend
  // w of Eq. 3, for differences as shares of their averages: 1 weighs a percent of memory like a
  // percent of rate, whatever their units.
  double memory_weight = 1;
  Partition previous;  // empty: none; kNowhere: a model that was not there
  double most_cost =
      kNoLimit;  // C_max: the sum of move_cost over the models that leave their place
};

// kInvalidArgument for numbers that make no sense; kResourceExhausted where arithmetic alone shows
// that no partition can keep the limits. Both name the model or the sum that is too much, and what
// would help. An OK is no promise that there is a partition.
Status Validate(const PartitionProblem& problem);

// What one sub-cluster sustains.
struct SubClusterLoad {
  int models = 0;
  double rate_rps = 0;
  double static_mb = 0;
  double dynamic_mb = 0;  // the largest of its models (Eq. 5)

  double memory_mb() const { return static_mb + dynamic_mb; }
};

std::vector<SubClusterLoad> LoadsOf(const PartitionProblem& problem, const Partition& partition);

struct PartitionScore {
  double excess = 0;            // over the limits of Eq. 4 and 5, as a sum of shares of the limit
  double rate_gap = 0;          // Delta R / R_avg (Eq. 6)
  double memory_gap = 0;        // Delta S / S_avg (Eq. 7)
  double objective = 0;         // rate_gap + memory_weight * memory_gap (Eq. 3)
  double rate_imbalance = 0;    // (max - min) / avg over the sub-clusters (A.2)
  double memory_imbalance = 0;  // the same, of static memory
  double cost = 0;              // Eq. 10
  int moved = 0;                // models that left their place; new ones are not counted

  // Within a part in 10^9 of the limits: sums of many numbers are rounded.
  bool KeepsLimits(const PartitionProblem& problem) const {
    return excess <= 1e-9 && cost <= problem.most_cost * (1 + 1e-9);
  }
};

// The sum over models by the number of sub-clusters, R_avg or S_avg; 1 where all are 0.
double AverageOf(const PartitionProblem& problem, double PartitionModel::*key);

PartitionScore ScoreOf(const PartitionProblem& problem, const Partition& partition);

// The first limit that the partition breaks, with the sub-cluster, its arithmetic and its largest
// models; empty when it breaks none.
std::string BrokenLimit(const PartitionProblem& problem, const Partition& partition);

}  // namespace tactus
