#include "planners/gpulet/share_latency.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tactus {
namespace {

constexpr LaneClass kWhole{0};

double Fma(const ProfileTable& whole, ModelId m, ExitId e, int batch) {
  return whole.Use(m, e, batch, kWhole).throughput[static_cast<std::size_t>(Resource::kFma)];
}

// What a batch's use is a part of; 0: nothing is used.
double AllUse(const ProfileTable& whole, ModelId m, ExitId e, UtilizationBase utilization_base) {
  if (utilization_base == UtilizationBase::kDevice) return 1;
  double most = 0;
  for (int b = 1; b <= whole.max_batch(m); ++b) most = std::max(most, Fma(whole, m, e, b));
  return most;
}

}  // namespace

Expected<ProfileTable> OnShares(const ProfileTable& whole, const ShareLatencyOptions& options) {
  CHECK(whole.lane_classes() == 1, "the whole device is one lane class");
  std::vector<ProfileTable::ModelRows> models;
  for (ModelId::rep m = 0; m < whole.models(); ++m) {
    const ModelId id{m};
    if (!whole.knows_use(id)) {
      CHECK(m < options.models.size(), "the error needs the model's name");
      return InvalidArgument("the profile does not say how much model '" + options.models[m] +
                             "' uses of the device, so its latency on a share is unknown; `tactus "
                             "profile` measures that");
    }
    auto& rows = models.emplace_back();
    rows.exits = whole.exits(id);
    rows.max_batch = whole.max_batch(id);
    for (const double share : options.shares) {
      for (ExitId::rep e = 0; e < static_cast<ExitId::rep>(rows.exits); ++e) {
        const double all = AllUse(whole, id, ExitId{e}, options.utilization_base);
        for (int b = 1; b <= rows.max_batch; ++b) {
          const double used = all > 0 ? Fma(whole, id, ExitId{e}, b) / all : 1;
          const double times = std::pow(std::max(1.0, used / share), options.exponent);
          const Duration alone = whole.Latency(id, ExitId{e}, b, kWhole);
          rows.latency.push_back(Nanos(std::llround(static_cast<double>(alone.count()) * times)));
          ResourceUse& use = rows.use.emplace_back(whole.Use(id, ExitId{e}, b, kWhole));
          use.throughput = (1 / times) * use.throughput;
        }
      }
    }
  }
  return ProfileTable(static_cast<int>(options.shares.size()), models);
}

}  // namespace tactus
