// Planners that divide devices among models, by name.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/planner.h"
#include "planners/gpulet/interference.h"

namespace tactus {

// The planners that answer within milliseconds: "gpulet", "gpulet-retry", "self-tuning"
// (planners/gpulet/elastic.h), "nexus" (on whole devices: planners/nexus/squishy.h) and
// "nexus-half" (on halves).
std::span<const std::string_view> PlannerNames();

// kNotFound for any other name. `interference`: what the first three count on, if anything.
Expected<std::unique_ptr<Planner>> MakePlanner(std::string_view name,
                                               std::optional<InterferenceModel> interference);

}  // namespace tactus
