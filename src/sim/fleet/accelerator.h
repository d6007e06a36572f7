// An accelerator of a simulated fleet, on which batches run beside each other. While all of them
// ask for more of it than there is, each runs slower in proportion; each neighbour costs a little
// even where nothing is short (as sim/devices/contention.h, for batches of equal weight that ask
// for one thing). As all are slowed alike, one clock of work done serves them all: O(log n) a
// batch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

class Accelerator {
 public:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  // `crosstalk`: what each neighbour costs, as a part of the time alone.
  explicit Accelerator(double crosstalk = 0) : crosstalk_(crosstalk) {}

  // `alone`: what it takes with the accelerator to itself; `use`: of its throughput, to 1.
  // `batch` names it among those that run.
  void Begin(std::uint32_t batch, TimePoint now, Duration alone, double use);
  // When the next one ends if nobody comes; kNever when nothing runs.
  TimePoint next() const { return next_; }
  // One that has ended by `now`, which is not after next(); kNone: no other has.
  std::uint32_t TakeEnded(TimePoint now);
  // The batch is stopped.
  void Stop(std::uint32_t batch, TimePoint now);

  std::size_t running() const { return jobs_.size(); }
  // How long at least one batch has run, and accelerators' worth of use, both until `now`.
  Duration busy(TimePoint now) const;

 private:
  struct Job {
    double ends = 0;  // on the clock of work, ns
    std::uint64_t order = 0;
    std::uint32_t batch = 0;
    double use = 0;
  };
  static bool After(const Job& a, const Job& b) {
    return a.ends != b.ends ? a.ends > b.ends : a.order > b.order;
  }
  void Settle(TimePoint now);
  void Retime();
  void Leave(double use);

  const double crosstalk_;
  std::vector<Job> jobs_;  // a heap, the one that ends first on top
  double work_ = 0;        // done by each since the accelerator was last idle, ns
  double asked_ = 0;       // of its throughput
  double slowdown_ = 1;
  std::uint64_t begun_ = 0;
  TimePoint settled_ = kStart;
  TimePoint next_ = kNever;
  Duration busy_{};
};

}  // namespace tactus
