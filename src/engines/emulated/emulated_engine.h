// Takes as long as a profile says and answers zeros. It stands for a device that this machine does
// not have; everything that shows its figures must say so (EngineTraits::emulated).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/engine.h"

namespace tactus {

struct EmulatedOptions {
  // How long a batch takes. Called from every lane's thread at once, for every batch; it sees
  // models that were loaded after the engine was made.
  std::function<Duration(ModelId, ExitId, int batch)> latency;
  // Standard deviation over mean of a batch's time. The noise is normal, cut off at three
  // deviations and at half the latency, and a function of the seed and the batch's id alone.
  double noise_cv = 0.02;
  std::uint64_t seed = 1;
  // The last part of a batch's time is spent spinning: a sleeping thread is woken late by up to
  // 0.1 ms, which would be noise that nobody asked for.
  Duration spin = Micros(150);
};

// Outputs have the shapes that the model's configuration states; a dimension that it leaves open is
// 1, but for the batch dimension.
std::unique_ptr<Engine> MakeEmulatedEngine(EmulatedOptions options);

}  // namespace tactus
