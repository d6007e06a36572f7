#include "sim/world/planning.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/feasible.h"
#include "sim/simulation.h"

namespace tactus {

Status Planning::Known(std::string_view planner) {
  if (planner.empty()) return {};
  if (planner == "nexus") return {};
  return NotFound("no planner '" + std::string(planner) + "'; there is nexus");
}

Status Planning::Feasible(std::string_view planner, const ServedModels& served_models,
                          std::span<const LaneSpec> lanes) {
  if (planner.empty() || Pinned(lanes)) return {};
  const LaneClass lane_class = lanes.front().lane_class;
  if (lanes.back().lane_class != lane_class) {  // kind by kind, in order
    return InvalidArgument(fmt::format(
        "the planner {} plans for lanes that are all alike, and these are of {} kinds; take a "
        "policy without a plan, or leave out [[lane_kinds]]",
        planner, served_models.profile.lane_classes()));
  }
  for (std::size_t i = 0; i < served_models.models.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    const Model& model = served_models.models[i];
    const Duration alone =
        served_models.profile.Latency(m, FinalExit(served_models.profile, m), 1, lane_class);
    if (!model.loaded || alone <= model.slo) continue;
    return InvalidArgument(fmt::format(
        "the planner {} finds no place for model '{}': one request alone takes {:.3f} ms at its "
        "final exit (the profile's percentile and the jitter), its SLO is {:.6g} ms; raise the "
        "SLO, "
        "name a quicker exit, or take a policy without a plan",
        planner, model.name, ToMillis(alone), ToMillis(model.slo)));
  }
  return {};
}

bool Planning::Pinned(std::span<const LaneSpec> lanes) {
  return std::ranges::any_of(lanes, [](const LaneSpec& lane) { return !lane.serves.all(); });
}

std::optional<Planning> Planning::For(std::string_view planner, const Scenario& scenario,
                                      const ServedModels& served_models) {
  if (planner.empty() || Pinned(MakeLanes(scenario))) return std::nullopt;
  return Planning(scenario, served_models);
}

Planning::Planning(const Scenario& scenario, const ServedModels& served_models)
    : lanes_(scenario.lanes), counts_(served_models.models.size(), 0) {
  const LaneClass lane_class = MakeLanes(scenario).front().lane_class;  // as of all: Feasible
  const std::vector<double> rates = Rates(scenario);
  for (std::size_t i = 0; i < served_models.models.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    NexusSession& session = sessions_.emplace_back();
    session.rate_rps = rates[i];
    session.slo = served_models.models[i].slo;
    const int most =
        std::min(served_models.models[i].max_batch, served_models.profile.max_batch(m));
    for (int b = 1; b <= most; ++b) {
      session.latency.push_back(
          served_models.profile.Latency(m, FinalExit(served_models.profile, m), b, lane_class));
    }
  }
}

std::shared_ptr<const Plan> Planning::First() {
  return std::make_shared<const Plan>(PlanNexus(sessions_, lanes_, ++epochs_));
}

std::shared_ptr<const Plan> Planning::Next(Duration epoch) {
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    sessions_[i].rate_rps = static_cast<double>(counts_[i]) / ToSeconds(epoch);
    counts_[i] = 0;
  }
  return First();
}

Status CheckPlanning(const Scenario& scenario, const ServedModels& served_models,
                     std::span<const LaneSpec> lanes, const Policy& policy,
                     const SimulationOptions& options) {
  if (auto known = Planning::Known(policy.traits().planner); !known) return known;
  if (options.plan == nullptr)
    return Planning::Feasible(policy.traits().planner, served_models, lanes);
  if (policy.traits().planner.empty()) {
    return InvalidArgument(
        fmt::format("policy '{}' does not use plans; choose one that does, for example planned",
                    policy.name()));
  }
  if (scenario.scale_interval_s > 0 || scenario.slots > 1 || options.plan->lanes.empty()) {
    return InvalidArgument(
        "a plan fixes the lanes (at least one, each with one slot); leave out [autoscale] and "
        "slots, or the plan");
  }
  return {};
}

}  // namespace tactus
