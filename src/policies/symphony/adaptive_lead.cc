#include "policies/symphony/adaptive_lead.h"

#include <algorithm>

#include "policies/candidate.h"

namespace tactus {
namespace {

constexpr double kUnknown = 0.1;       // of the SLO
constexpr double kForOtherModels = 4;  // batch lengths a lane, where they take all lanes

}  // namespace

void AdaptiveLead::Prepare(const View& view, const LaneGroups& groups) {
  const std::size_t models = view.models.size();
  slos_.resize(models);
  sums_.assign(groups.size(), Load{});
  loads_.assign(models * groups.size(), Load{});
  leads_.resize(models * groups.size());
  for (std::size_t i = 0; i < models; ++i) {
    slos_[i] = view.models[i].slo;
    const auto first = leads_.begin() + static_cast<std::ptrdiff_t>(i * groups.size());
    std::fill_n(first, groups.size(), FromSeconds(kUnknown * ToSeconds(slos_[i])));
  }
}

void AdaptiveLead::Update(ModelId m, double rate, const LaneGroups& groups) {
  int lanes_of_model = 0;
  for (const std::uint32_t g : groups.ServersOf(m)) lanes_of_model += groups.LanesIn(g);
  for (const std::uint32_t g : groups.ServersOf(m)) {
    const BatchCosts& costs = groups.Costs(g, m);
    const int lanes = groups.LanesIn(g);
    const double here = rate * lanes / lanes_of_model;
    const int batch = TargetBatch(costs, slos_[m.value()], here, lanes);
    const Load now{.lanes = here / batch * ToSeconds(costs(batch)), .batches = here / batch};
    Load& load = loads_[Index(m, g)];
    Load& sum = sums_[g];
    sum.lanes += now.lanes - load.lanes;
    sum.batches += now.batches - load.batches;
    load = now;
    if (rate <= 0 || sum.batches <= 0) continue;
    const double others = std::clamp((sum.lanes - load.lanes) / lanes, 0.0, 1.0);
    const double mean = sum.lanes / sum.batches;
    leads_[Index(m, g)] = FromSeconds((1 + kForOtherModels * others) * mean / lanes);
  }
}

}  // namespace tactus
