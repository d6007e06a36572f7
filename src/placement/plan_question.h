// What a planner is asked, whoever asks: the simulator for a scenario, the runtime for the models
// that are loaded. And which model is meant where the two count them differently: a plan's ModelIds
// are those of its question, and hold nowhere else.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model.h"
#include "core/planner.h"

namespace tactus {

struct ModelToPlace {
  const Model& model;
  double rate_rps = 0;
  double memory_mb = 0;  // on every device that serves it; 0 where nobody knows
};

struct DevicesToSplit {
  int count = 1;
  std::vector<double> shares;                                  // see PlanInput
  double memory_mb = std::numeric_limits<double>::infinity();  // of each
};

struct PlanQuestion {
  std::shared_ptr<const ProfileTable> profile;  // what input.profile points to
  PlanInput input;
};

// `profile` has the models in their order, and a lane class for each share.
PlanQuestion MakePlanQuestion(std::shared_ptr<const ProfileTable> profile,
                              std::span<const ModelToPlace> models, DevicesToSplit devices);

// By ModelId of the input.
std::vector<std::string> NamesOf(const PlanInput& input);

// The plan in other ids: `names` are its models by ModelId, `id_of` says which id one has here, on
// this lane. Entries of models without one are left out.
using IdOf = std::function<std::optional<ModelId>(LaneId lane, const std::string& name)>;
Plan Renumbered(Plan plan, std::span<const std::string> names, const IdOf& id_of);

// As it lies in `names`.
std::optional<ModelId> FindModel(std::span<const std::string> names, const std::string& name);

}  // namespace tactus
