#include "policies/batch_costs.h"

#include <algorithm>

namespace tactus {

int BatchCosts::Largest(int limit, Duration slack) const {
  const int most = std::min(limit, max_batch());
  // Most often the queue is what limits the batch.
  if (most < 1 || costs_[most - 1] <= slack) return std::max(most, 0);
  const auto end = costs_.begin() + most;
  return static_cast<int>(std::upper_bound(costs_.begin(), end, slack) - costs_.begin());
}

}  // namespace tactus
