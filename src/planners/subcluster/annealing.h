// The state of the local search: a partition with its sums kept up to date, changes of a few models
// at once that are weighed and taken back, and what the present partition is worth.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "planners/subcluster/partition.h"

namespace tactus {

class Annealing {
 public:
  Annealing(const PartitionProblem& problem, std::uint64_t seed);

  // Starts over from `partition`, with every sum taken anew, so that rounding does not add up.
  void Load(const Partition& partition);
  // One change, accepted when it makes the energy smaller, or by chance when it raises it by little
  // in comparison with `temperature`.
  void Try(double temperature);

  const Partition& partition() const { return at_; }
  // What the search descends: the objective, a slight preference for an even spread below it, so
  // that a sub-cluster which is not the worst counts too, and a steep price for broken limits.
  double energy() const { return now_.energy; }
  double objective() const { return now_.objective; }
  double excess() const { return now_.excess; }

 private:
  struct Worth {
    double energy = 0;
    double objective = 0;
    double excess = 0;
  };
  struct Sums {
    double rate = 0;     // over the average
    double memory = 0;   // static, over the average
    double dynamic = 0;  // the largest, in MB
  };
  struct Change {
    int model;
    int from;
    int to;
  };
  // A shift is one change, a swap two; bringing others home to pay for it may add as many.
  static constexpr int kMostChanges = 4;

  void Propose();
  bool Afford();
  bool Contains(int model) const;
  bool Add(int model, int to);
  void Move(int model, int to);
  double CostAt(int model, int place) const;
  int Source();
  void FindLargest(int sub_cluster);
  Worth Weigh();

  const PartitionProblem& problem_;
  Rng rng_;
  double rate_average_ = 0;
  double memory_average_ = 0;
  double rate_target_ = 0;  // the average over itself; 0 where there is nothing to spread
  double memory_target_ = 0;
  std::vector<double> rate_;    // of each model over the average
  std::vector<double> memory_;  // static
  Partition at_;
  std::vector<std::vector<int>> inside_;  // models by sub-cluster
  std::vector<int> position_;             // of each model in inside_[at_[model]]
  std::vector<Sums> loads_;
  std::vector<int> away_;           // models that left their place
  std::vector<int> away_position_;  // of each model in away_; -1: at home
  double cost_ = 0;
  int worst_rate_ = 0;  // the sub-clusters farthest from the averages
  int worst_memory_ = 0;
  Worth now_;
  std::array<Change, kMostChanges> changes_{};
  int change_count_ = 0;
};

// Models of the previous partition where they were, the others largest first where they fit best.
Partition PlaceGreedily(const PartitionProblem& problem);

}  // namespace tactus
