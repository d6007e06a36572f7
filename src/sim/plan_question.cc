#include "sim/plan_question.h"

#include "sim/simulation.h"

namespace tactus {

Expected<PlanQuestion> MakePlanQuestion(const Scenario& scenario, const ProfileFile& profile,
                                        std::span<const ShareProfile> on_share) {
  auto deployment = MakeDeployment(scenario, profile, on_share);
  if (!deployment) return std::unexpected(deployment.error());
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  PlanQuestion question;
  question.deployment = std::move(*deployment);
  PlanInput& input = question.input;
  input.profile = &question.deployment->profile;
  input.shares = Shares(scenario);
  input.devices = scenario.lanes;
  if (scenario.plan_memory_mb > 0) input.device_memory_mb = scenario.plan_memory_mb;
  const std::vector<double> rates = Rates(scenario);
  for (std::size_t m = 0; m < rates.size(); ++m) {
    const Model& model = question.deployment->models[m];
    input.models.push_back({.name = model.name,
                            .rate_rps = rates[m],
                            .slo = model.slo,
                            .memory_mb = MemoryOf(selected->models[m])});
  }
  return question;
}

}  // namespace tactus
