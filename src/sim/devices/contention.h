// How batches slow each other on one device of the simulated world.
//
// Each resource is shared in proportion: while the batches together ask for no more than its
// capacity, everybody gets what it asks for; beyond that all who need it are cut, in proportion to
// what they ask for and to the weight of their priority. A batch spends its time on the resources
// in proportion to its use of them, so what it loses on one counts by that part. What is lost is
// then stretched by the batch's own luck, which has a heavy tail.
//
// A use was measured alone, so the device did hand out that much to one: where a batch alone uses
// more than the capacity, that is what there is to share while it runs. Otherwise its mere
// presence would count as a shortage, and a neighbour that asks for next to nothing would slow it
// and be slowed as if it asked for much.
//
// It is piecewise rational in the demands, on purpose of another form than the exponential that
// policies/strait fits: a prediction must be able to be wrong here, as it is in life.
#pragma once

#include <span>

#include "base/rng.h"
#include "core/resource_use.h"

namespace tactus {

struct Contention {
  Throughput capacity{1, 1, 1, 1, 1};  // > 0; of what several can have together
  double crosstalk = 0.03;             // each neighbour costs this part even where nothing is short
};

struct Contender {
  Throughput use{};   // alone, of a device with capacity 1
  double weight = 1;  // of its priority, > 0
  double luck = 1;    // stretches the excess over running alone, > 0
};

inline constexpr double kMostSlowdown = 1e6;  // weights far apart stop a batch, in effect

// How many times longer each takes while exactly these run together: from 1 to kMostSlowdown, and 1
// for a batch alone. `slowdown` is as long as `batches`.
void Slowdowns(const Contention& contention, std::span<const Contender> batches,
               std::span<double> slowdown);

// A batch's luck: log-normal with mean 1, `spread` that of its logarithm.
double DrawLuck(double spread, Rng& rng);

}  // namespace tactus
