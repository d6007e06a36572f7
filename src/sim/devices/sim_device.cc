#include "sim/devices/sim_device.h"

#include <algorithm>
#include <cmath>

#include "sim/devices/contention.h"

namespace tactus {
namespace {

// Where the profile's quantiles lie.
constexpr std::array<double, 5> kAt = {0, 0.50, 0.95, 0.99, 1};

}  // namespace

SimDevice::SimDevice(const ProfileFile& profile, std::uint64_t seed, bool noise)
    : noise_(noise), window_(FromMillis(profile.service_window_ms)), trace_(profile.service_trace) {
  for (const ProfiledModel& model : profile.models) {
    ModelCells& row =
        models_.emplace_back(ModelCells{model.max_batch,
                                        {},
                                        Rng::Stream(seed, "service/" + model.name),
                                        Rng::Stream(seed, "contention/" + model.name)});
    for (const ProfiledExit& exit : model.exits) {
      for (const ProfileCell& cell : exit.cells) {
        const std::array<double, 5> ms = {cell.min_ms, cell.p50_ms, cell.p95_ms, cell.p99_ms,
                                          cell.max_ms};
        Cell& made = row.cells.emplace_back();
        for (std::size_t i = 0; i < ms.size(); ++i) {
          made.quantile_ns[i] = ms[i] * 1e6 * model.service_ratio;
        }
        made.mean = FromMillis(cell.mean_ms * model.service_ratio);
        made.varies = noise && cell.repetitions > 0;
        made.use = model.resources_source.empty()
                       ? kAssumedUse
                       : ResourceUse{cell.throughput, FromMillis(cell.transfer_ms)};
      }
    }
  }
}

double SimDevice::StretchAt(TimePoint at) const {
  if (trace_.empty()) return 1;
  const auto window = static_cast<std::size_t>((at - kStart) / window_);
  return trace_[window % trace_.size()];
}

Duration SimDevice::Draw(ModelId model, ExitId exit, int batch, TimePoint at) {
  ModelCells& row = models_[model.value()];
  const Cell& cell = row.cells[exit.value() * row.max_batch + batch - 1];
  const double stretch = StretchAt(at);
  if (!cell.varies) {
    const auto mean = static_cast<double>(cell.mean.count());
    return std::max(Duration{std::llround(stretch * mean)}, Nanos(1));
  }
  const double u = row.rng.Uniform();
  std::size_t i = 1;
  while (u > kAt[i]) ++i;
  const double low = cell.quantile_ns[i - 1];
  const double ns = low + (cell.quantile_ns[i] - low) * (u - kAt[i - 1]) / (kAt[i] - kAt[i - 1]);
  return std::max(Duration{std::llround(stretch * ns)}, Nanos(1));
}

ResourceUse SimDevice::Use(ModelId model, ExitId exit, int batch) const {
  const ModelCells& row = models_[model.value()];
  return row.cells[exit.value() * row.max_batch + batch - 1].use;
}

double SimDevice::DrawLuck(ModelId model, double spread) {
  if (!noise_ || spread == 0) return 1;
  return tactus::DrawLuck(spread, models_[model.value()].luck);
}

}  // namespace tactus
