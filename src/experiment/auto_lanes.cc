#include "experiment/auto_lanes.h"

#include <utility>

#include "workload/profile_threads.h"

namespace tactus {

ModelDemand DemandOf(const ProfiledModel& model, int measured, Duration slo,
                     const ProfileOptions& options) {
  ModelDemand demand{.model = model.name, .slo = slo};
  for (const int threads : ThreadsKnown(model, measured)) {
    demand.by_threads[threads] =
        QuickestLatencies(AtThreads(model, measured, threads), model.max_batch, options);
  }
  return demand;
}

Expected<LaneQuestion> LaneQuestionOf(const Scenario& scenario, const ProfileFile& profile) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  LaneQuestion question{.processors = scenario.processors, .slots = scenario.slots};
  const ProfileOptions options{.percentile = scenario.percentile, .jitter_ms = scenario.jitter_ms};
  const std::vector<double> rates = Rates(scenario);
  for (std::size_t m = 0; m < selected->models.size(); ++m) {
    ModelDemand demand = DemandOf(selected->models[m], profile.machine.threads,
                                  FromMillis(scenario.models[m].slo_ms), options);
    demand.weight = rates[m];
    question.demands.push_back(std::move(demand));
  }
  return question;
}

void TakeLanes(const LaneChoice& choice, Scenario& scenario, ProfileFile& profile) {
  scenario.lanes = choice.lanes;
  profile = AtThreads(profile, choice.threads);
}

}  // namespace tactus
