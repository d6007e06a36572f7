#include "sim/world/plan_question.h"

#include <memory>
#include <utility>
#include <vector>

#include "sim/simulation.h"

namespace tactus {

Expected<PlanQuestion> MakePlanQuestion(const Scenario& scenario, const ProfileFile& profile,
                                        std::span<const ShareProfile> on_share) {
  auto served_models = MakeServedModels(scenario, profile, on_share);
  if (!served_models) return std::unexpected(served_models.error());
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  std::vector<ModelToPlace> models;
  const std::vector<double> rates = Rates(scenario);
  for (std::size_t m = 0; m < rates.size(); ++m) {
    models.push_back({.model = (*served_models)->models[m],
                      .rate_rps = rates[m],
                      .memory_mb = MemoryOf(selected->models[m])});
  }
  DevicesToSplit devices{.count = scenario.lanes, .shares = Shares(scenario)};
  if (scenario.plan_memory_mb > 0) devices.memory_mb = scenario.plan_memory_mb;
  const std::shared_ptr<const ProfileTable> table(*served_models, &(*served_models)->profile);
  return MakePlanQuestion(table, models, std::move(devices));
}

}  // namespace tactus
