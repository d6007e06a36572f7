#include "gpulet_problem.h"

#include <utility>

#include "planners/gpulet/share_latency.h"

namespace tactus {

Expected<std::unique_ptr<GpuletProblem>> MakeGpuletProblem(const Experiment& experiment,
                                                           std::vector<double> shares,
                                                           double exponent) {
  const Scenario& scenario = experiment.scenario;
  const auto models = MakeModels(scenario, experiment.profile);
  if (!models) return std::unexpected(models.error());
  const auto selected = SelectProfile(scenario, experiment.profile);
  if (!selected) return std::unexpected(selected.error());
  const auto whole = MakeTable(
      *selected, *models, {.percentile = scenario.percentile, .jitter_ms = scenario.jitter_ms});
  if (!whole) return std::unexpected(whole.error());
  auto problem = std::make_unique<GpuletProblem>();
  PlanInput& input = problem->input;
  input.shares = std::move(shares);
  input.shares.push_back(1);
  auto on_shares = OnShares(*whole, {.shares = input.shares, .exponent = exponent});
  if (!on_shares) return std::unexpected(on_shares.error());
  problem->profile = std::move(*on_shares);
  input.profile = &problem->profile;
  input.devices = scenario.lanes;
  const std::vector<double> rates = Rates(scenario);
  for (std::size_t m = 0; m < models->size(); ++m) {
    input.models.push_back(
        {.name = (*models)[m].name, .rate_rps = rates[m], .slo = (*models)[m].slo});
  }
  return problem;
}

}  // namespace tactus
