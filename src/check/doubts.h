// What deserves a warning before a run: nothing here is an error, and the run itself refuses what
// is one. `tactus check` says all of it; the commands that simulate, measure and serve say what
// concerns them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/policy_traits.h"
#include "dispatch/dispatcher.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"
#include "workload/share_profiles.h"

namespace tactus {

// Latencies of the scenario's models that are odd, such as those that fall as batches grow, and
// kinds of lanes that are too slow for the SLO of a model: a line for each of the first few, then
// how many more; empty when nothing is.
std::string ScenarioDoubts(const Scenario& scenario, const ProfileFile& profile);

// What of the scenario the policy cannot use, and models of which it will serve nothing: a line
// each. `lanes`: on which the served models run.
std::string PolicyDoubts(const PolicyTraits& policy, const Scenario& scenario,
                         const ServedModels& served_models, std::span<const LaneSpec> lanes);

// Models whose memory the profile does not say where [plan] memory_mb is to be kept to, and what
// would tell; nothing where all are known, or no memory is looked at.
std::optional<std::string> MemoryDoubt(const Scenario& scenario, const ProfileFile& profile);

// More batches at once than there are cores: they slow each other as no profile knows. `wanted`:
// lanes, by slots, by threads of each.
std::optional<std::string> CoresDoubt(int wanted, int cores);

// The share of --on-share into which no planner will ever split the device, if there is one.
std::optional<std::string> SharesDoubt(std::span<const ShareProfile> shares);

}  // namespace tactus
