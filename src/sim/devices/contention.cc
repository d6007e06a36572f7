#include "sim/devices/contention.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus {
namespace {

// The level such that everybody gets min(1, level * weight) of what it asks for of resource `r` and
// the sum is the capacity. Those with a large weight may be served in full, which leaves more to
// the others, so it takes a round for each such weight at most.
double Level(std::span<const Contender> batches, std::size_t r, double capacity) {
  double level = 0;
  for (std::size_t round = 0; round <= batches.size(); ++round) {
    double left = capacity;
    double wanted = 0;
    for (const Contender& batch : batches) {
      if (level * batch.weight >= 1) {
        left -= batch.use[r];
      } else {
        wanted += batch.use[r] * batch.weight;
      }
    }
    if (!(wanted > 0)) break;
    const double next = left / wanted;
    if (next <= level) break;
    level = next;
  }
  return level;
}

}  // namespace

void Slowdowns(const Contention& contention, std::span<const Contender> batches,
               std::span<double> slowdown) {
  CHECK(batches.size() == slowdown.size(), "one slowdown for each batch");
  const double neighbours = static_cast<double>(batches.size()) - 1;
  for (double& s : slowdown) s = 1 + contention.crosstalk * neighbours;
  for (std::size_t r = 0; r < kResources && batches.size() > 1; ++r) {
    double asked = 0;
    double capacity = contention.capacity[r];
    for (const Contender& batch : batches) {
      asked += batch.use[r];
      capacity = std::max(capacity, batch.use[r]);
    }
    if (asked <= capacity) continue;
    const double level = Level(batches, r, capacity);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (!(batches[i].use[r] > 0)) continue;
      const double share = std::min(1.0, level * batches[i].weight);
      double all = 0;
      for (const double use : batches[i].use) all += use;
      slowdown[i] += batches[i].use[r] / all * (1 / share - 1);
    }
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    slowdown[i] = std::min(1 + (slowdown[i] - 1) * batches[i].luck, kMostSlowdown);
  }
}

double DrawLuck(double spread, Rng& rng) {
  return std::exp(spread * rng.Normal() - spread * spread / 2);
}

}  // namespace tactus
