#include "workload/bounds.h"

#include <algorithm>
#include <vector>

namespace tactus {

double StaggeredBound(const AffineModel& model, int lanes) {
  const auto latency = [&](double b) { return model.alpha_ms * b + model.beta_ms; };
  const double longest = model.slo_ms / (1 + 1.0 / lanes);
  if (latency(1) > longest) return 0;
  int batch = 1;
  // Without a cost per request every batch is as good as the last: an SLO bounds nothing then.
  while (model.alpha_ms > 0 && latency(batch + 1) <= longest) ++batch;
  return lanes * batch / latency(batch) * 1000;
}

double FluidLanes(std::span<const AffineModel> models) {
  double lanes = 0;
  for (const AffineModel& model : models) {
    const double per_ms = model.rate_rps / 1000;
    const double gathered = per_ms * (model.slo_ms - model.beta_ms) / (1 + per_ms * model.alpha_ms);
    lanes += per_ms * (model.alpha_ms + model.beta_ms / std::max(1.0, gathered));
  }
  return lanes;
}

double FluidPeak(std::span<const AffineModel> models, double lanes) {
  double total = 0;
  for (const AffineModel& model : models) total += model.rate_rps;
  if (total <= 0) return 0;
  std::vector<AffineModel> scaled(models.begin(), models.end());
  const auto needed = [&](double factor) {
    for (std::size_t i = 0; i < scaled.size(); ++i)
      scaled[i].rate_rps = models[i].rate_rps * factor;
    return FluidLanes(scaled);
  };
  // FluidLanes rises with the rate, so bisection finds the one crossing.
  double low = 0;
  double high = 1;
  while (needed(high) < lanes && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (needed(middle) < lanes ? low : high) = middle;
  }
  return total * low;
}

}  // namespace tactus
