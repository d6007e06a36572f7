#include "check/never_served.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "core/feasible.h"

namespace tactus {

namespace {

// Of a batch of so many at the exit that the policy counts on.
Duration Quickest(const LeastService& counted, const View& view, ModelId m, int size) {
  Duration quickest = QuickestService(view, m, size);
  for (int e = 0; counted.quickest_exit && e < view.profile.exits(m); ++e) {
    const ExitId exit{static_cast<ExitId::rep>(e)};
    quickest = std::min(quickest, QuickestService(view, m, size, exit));
  }
  return quickest;
}

// Duration::max() where no batch size would do.
Duration Least(const LeastService& counted, const View& view, ModelId m) {
  Duration least = counted.sizes.empty() ? Quickest(counted, view, m, 1) : Duration::max();
  for (const int size : counted.sizes) {
    if (size <= LargestBatch(view, m)) least = std::min(least, Quickest(counted, view, m, size));
  }
  return least == Duration::max() ? least : Stretched(least, counted.margin) + counted.delay;
}

}  // namespace

std::optional<std::string> ExplainNeverServed(const PolicyTraits& policy,
                                              const ServedModels& served_models,
                                              std::span<const LaneSpec> lanes, ModelId m) {
  const Model& model = served_models.models[m.value()];
  if (!policy.least || !model.loaded || model.slo <= Duration{}) return std::nullopt;
  std::vector<Lane> there;
  for (const LaneSpec& spec : lanes) {
    there.push_back({.lane_class = spec.lane_class, .slots = spec.slots});
  }
  const View view{served_models.models, {}, there, served_models.profile};
  const Duration profiled = Quickest(*policy.least, view, m, 1);
  const Duration least = Least(*policy.least, view, m);
  if (least <= model.slo) return std::nullopt;
  if (least == Duration::max()) {
    return fmt::format(
        "policy '{}' serves nothing of model '{}': it has no batch size for it, whose batches are "
        "of 1 to {}",
        policy.name, model.name, LargestBatch(view, m));
  }
  return fmt::format(
      "policy '{}' serves nothing of model '{}': it counts on {:.3f} ms at least: a request alone "
      "at the {} exit takes {:.3f} ms (the profile's percentile and the jitter), and its own "
      "delays, batch sizes and margins take the rest; the SLO is {:.6g} ms",
      policy.name, model.name, ToMillis(least), policy.least->quickest_exit ? "quickest" : "final",
      ToMillis(profiled), ToMillis(model.slo));
}

}  // namespace tactus
