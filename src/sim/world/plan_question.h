// What a scenario asks a planner: how its devices are to be split, who is to be where.
#pragma once

#include <span>

#include "base/expected.h"
#include "placement/plan_question.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"
#include "workload/share_profiles.h"

namespace tactus {

// Its lanes are the devices, [plan] says what parts of them there are, and rates are those at the
// start. `on_share`: see MakeServedModels.
Expected<PlanQuestion> MakePlanQuestion(const Scenario& scenario, const ProfileFile& profile,
                                        std::span<const ShareProfile> on_share = {});

}  // namespace tactus
