#include "planners/gpulet/interference.h"

#include <algorithm>

namespace tactus {
namespace {

double Of(const Throughput& use, Resource resource) {
  return use[static_cast<std::size_t>(resource)];
}

}  // namespace

double InterferenceModel::Weight(const Throughput& other) const {
  return c[1] * Of(other, Resource::kL2) + c[3] * Of(other, Resource::kDram);
}

double InterferenceModel::Slowdown(const Throughput& own, const Throughput& other) const {
  return std::max(
      1.0, c[0] * Of(own, Resource::kL2) + c[2] * Of(own, Resource::kDram) + Weight(other) + c[4]);
}

Throughput WorstUse(const PlanInput& input, LaneClass lane, ModelId m) {
  const ProfileTable& profile = *input.profile;
  const ExitId last{static_cast<ExitId::rep>(profile.exits(m) - 1)};
  Throughput worst{};
  for (int batch = 1; batch <= profile.max_batch(m); ++batch) {
    if (batch > 1 && 2 * input.Latency(m, batch, lane) > input.models[m.value()].slo) break;
    const Throughput& use = profile.Use(m, last, batch, lane).throughput;
    for (std::size_t r = 0; r < kResources; ++r) worst[r] = std::max(worst[r], use[r]);
  }
  return worst;
}

}  // namespace tactus
