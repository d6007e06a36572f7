// What a batch of one model costs on one kind of lane, at one exit: its latency and the time to get
// there.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

// How long a batch is on its way from the decision to the lane (Symphony, Appendix D, delay(b)).
struct NetworkDelays {
  Duration control{};      // d_ctrl: once for each batch
  Duration per_request{};  // d_data: the inputs of one request
};

// cost(b) = l(b) + d_ctrl + b d_data for b = 1 to max_batch, made to rise with b: where a profile
// says that a larger batch is quicker, the smaller one is taken to cost as much as any before it,
// so that every search over batch sizes is a bisection.
//
// Departure: Appendix D subtracts delay(b) from d - l(b + 1). One more request also brings its own
// input, so here frontrun is d - cost(b + 1), from which on no further request could join.
class BatchCosts {
 public:
  BatchCosts() = default;
  // `latency[b - 1]` is l(b).
  explicit BatchCosts(std::span<const Duration> latency, NetworkDelays delays = {}) {
    Set(static_cast<int>(latency.size()), delays, [&](int b) { return latency[b - 1]; });
  }
  // `latency(b)` is l(b). Allocates only for more batches than there were ever before.
  void Set(int max_batch, NetworkDelays delays, auto latency) {
    costs_.clear();
    costs_.reserve(static_cast<std::size_t>(max_batch));
    for (int b = 1; b <= max_batch; ++b) {
      const Duration cost = latency(b) + delays.control + b * delays.per_request;
      costs_.push_back(costs_.empty() ? cost : std::max(costs_.back(), cost));
    }
  }

  int max_batch() const { return static_cast<int>(costs_.size()); }
  // `batch` in [1, max_batch()].
  Duration operator()(int batch) const { return costs_[batch - 1]; }
  // The largest batch up to `limit` that costs no more than `slack`; 0 when there is none.
  int Largest(int limit, Duration slack) const;

 private:
  std::vector<Duration> costs_;
};

}  // namespace tactus
