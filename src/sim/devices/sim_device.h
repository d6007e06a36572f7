// How long a batch takes in simulation: drawn from the distribution that the profile measured.
//
// This is the physics of the simulated world, apart from what policies are told (ProfileTable), so
// that a prediction can be wrong in simulation as it is in life.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "base/serving_time.h"
#include "workload/profile_file.h"

namespace tactus {

class SimDevice {
 public:
  // `profile` holds the models in the order of their ids (SelectProfile). Without `noise`, and for
  // cells that were not measured, a batch takes the cell's mean. All times the model's
  // service_ratio and the profile's service_trace.
  SimDevice(const ProfileFile& profile, std::uint64_t seed, bool noise);

  // Models draw from streams of their own: one more model changes no other's luck.
  // `at`: when it starts; the profile's service_trace says how fast the machine is then.
  Duration Draw(ModelId model, ExitId exit, int batch, TimePoint at);
  // What such a batch really asks of the device; kAssumedUse where the profile does not say.
  ResourceUse Use(ModelId model, ExitId exit, int batch) const;
  // A batch's luck among neighbours: log-normal with mean 1 and `spread` of its logarithm, from a
  // stream of its own. 1 without noise.
  double DrawLuck(ModelId model, double spread);

 private:
  struct Cell {
    std::array<double, 5> quantile_ns;  // min, P50, P95, P99, max
    Duration mean;
    bool varies;
    ResourceUse use;
  };
  struct ModelCells {
    int max_batch;
    std::vector<Cell> cells;  // by exit, then batch
    Rng rng;
    Rng luck;
  };
  // How many times as long as usual batches take at that time.
  double StretchAt(TimePoint at) const;

  const bool noise_;
  std::vector<ModelCells> models_;
  Duration window_{};
  std::vector<double> trace_;
};

}  // namespace tactus
