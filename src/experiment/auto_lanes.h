// `[lanes] count = "auto"`: the lanes of a scenario, chosen as `tactus serve --lanes auto` chooses
// them (planners/lane_choice.h).
#pragma once

#include "base/expected.h"
#include "planners/lane_choice.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

// What the choice needs to know of a model whose profile was measured with `measured` threads.
ModelDemand DemandOf(const ProfiledModel& model, int measured, Duration slo,
                     const ProfileOptions& options);

// What is asked for the scenario: its processors and slots, its models by their rates.
Expected<LaneQuestion> LaneQuestionOf(const Scenario& scenario, const ProfileFile& profile);

// Gives the scenario so many lanes, and the profile what batches take with so many threads.
void TakeLanes(const LaneChoice& choice, Scenario& scenario, ProfileFile& profile);

}  // namespace tactus
