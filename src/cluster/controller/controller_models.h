// The repository that a controller's nodes get their models from.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/expected.h"
#include "cluster/control/controller.h"
#include "core/fleet_plan.h"

namespace tactus {

// models/ beside the fleet, where it is a folder; else nothing.
std::filesystem::path ModelsBeside(const std::filesystem::path& fleet);

// Reads those models and pipelines of the fleet that are in the repository, every byte, and has the
// controller offer them; says what it lacks.
Status OfferModels(const std::filesystem::path& repository, const FleetInput& fleet,
                   ControllerOptions& options, const std::function<void(const std::string&)>& log);

}  // namespace tactus
