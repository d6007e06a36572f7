#include "planners/gpulet/interference.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "core/shares.h"

namespace tactus {
namespace {

double Of(const Throughput& use, Resource resource) {
  return use[static_cast<std::size_t>(resource)];
}

}  // namespace

double InterferenceModel::Weight(const Throughput& other) const {
  return c[1] * Of(other, Resource::kL2) + c[3] * Of(other, Resource::kDram);
}

double InterferenceModel::Factor(const Throughput& own, const Throughput& other) const {
  return c[0] * Of(own, Resource::kL2) + c[2] * Of(own, Resource::kDram) + Weight(other) + c[4];
}

double InterferenceModel::Slowdown(const Throughput& own, const Throughput& other) const {
  return std::max(1.0, Factor(own, other));
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

Status CheckPredictions(const InterferenceModel& interference, const PlanInput& input) {
  std::vector<std::vector<Throughput>> uses(input.shares.size());  // by lane class, by model
  for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
    for (ModelId::rep m = 0; m < input.models.size(); ++m) {
      uses[c].push_back(WorstUse(input, LaneClass{c}, ModelId{m}));
    }
  }
  for (std::size_t c = 0; c < input.shares.size(); ++c) {
    const auto rest = ComplementOf(input.shares, input.shares[c]);
    if (!rest) continue;
    for (std::size_t own = 0; own < input.models.size(); ++own) {
      for (std::size_t other = 0; other < input.models.size(); ++other) {
        const double factor = interference.Factor(uses[c][own], uses[*rest][other]);
        if (factor >= kLeastFactor) continue;
        return InvalidArgument(fmt::format(
            "batches of '{}' on {:.4g} % of a device would take {:.4g} times as long beside '{}' "
            "on the rest as alone; a neighbour cannot make a batch faster: use the coefficients of "
            "`tactus fit interference`",
            input.models[own].name, 100 * input.shares[c], factor, input.models[other].name));
      }
    }
  }
  return {};
}

}  // namespace tactus
