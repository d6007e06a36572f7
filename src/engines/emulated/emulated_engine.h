// Takes as long as a profile says and answers zeros. It stands for a device that this machine does
// not have; everything that shows its figures must say so (EngineTraits::emulated).
//
// One thread keeps the time of all batches, so that a cluster of hundreds of lanes fits into a
// process: they cost memory only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/engine.h"
#include "core/profile_table.h"

namespace tactus {

struct EmulatedOptions {
  // What the model's batches cost, for one lane class; asked once for each lane, on loading. Its
  // error is the load's. At least the exits of the model, in their order.
  std::function<Expected<ProfileTable::ModelRows>(const ModelSpec&)> latencies;
  // Standard deviation over mean of a batch's time. The noise is normal, cut off at three
  // deviations and at half the latency, and a function of the seed and the batch's id alone.
  double noise_cv = 0.02;
  std::uint64_t seed = 1;
  // The last part of the wait for a batch's end is spent spinning: a sleeping thread is woken late
  // by up to 0.1 ms, which would be noise that nobody asked for. Costs up to a whole core where
  // batches end this often.
  Duration spin = Micros(150);
};

// Outputs have the shapes that the model's configuration states; a dimension that it leaves open is
// 1, but for the batch dimension.
std::unique_ptr<Engine> MakeEmulatedEngine(EmulatedOptions options);

}  // namespace tactus
