#include "placement/plan_question.h"

#include <algorithm>
#include <utility>

namespace tactus {

PlanQuestion MakePlanQuestion(std::shared_ptr<const ProfileTable> profile,
                              std::span<const ModelToPlace> models, DevicesToSplit devices) {
  PlanQuestion question;
  question.profile = std::move(profile);
  PlanInput& input = question.input;
  input.profile = question.profile.get();
  input.devices = devices.count;
  input.shares = std::move(devices.shares);
  input.device.memory_mb = devices.memory_mb;
  for (const ModelToPlace& each : models) {
    input.models.push_back({.name = each.model.name,
                            .rate_rps = each.rate_rps,
                            .slo = each.model.slo,
                            .memory_mb = each.memory_mb});
  }
  return question;
}

std::vector<std::string> NamesOf(const PlanInput& input) {
  std::vector<std::string> names;
  for (const PlannedModel& model : input.models) names.push_back(model.name);
  return names;
}

Plan Renumbered(Plan plan, std::span<const std::string> names, const IdOf& id_of) {
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const LaneId lane{static_cast<LaneId::rep>(i)};
    std::vector<PlanEntry> entries;
    for (PlanEntry entry : plan.lanes[i].entries) {
      const auto id = id_of(lane, names[entry.model.value()]);
      if (!id) continue;
      entry.model = *id;
      entries.push_back(entry);
    }
    plan.lanes[i].entries = std::move(entries);
  }
  return plan;
}

std::optional<ModelId> FindModel(std::span<const std::string> names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return ModelId{static_cast<ModelId::rep>(found - names.begin())};
}

}  // namespace tactus
