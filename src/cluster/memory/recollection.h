// What a controller that begins to lead takes from the knowledge base.
#pragma once

#include <string_view>

#include "base/expected.h"
#include "core/fleet_plan.h"
#include "fleet/leader.h"
#include "fleet/remembered.h"
#include "knowledge/store.h"

namespace tactus {

struct Recollection {
  LeaderKept highest;  // it counts on from there
  Remembered remembered;
};

// What the store knows of this fleet and planner: plans of another are ignored. A link is as slow
// as the 25th percentile of the last hour's samples, of both directions the slower. The store's
// errors.
Expected<Recollection> Recollect(knowledge::Store& store, const FleetInput& declared,
                                 std::string_view planner, knowledge::UtcTime now);

}  // namespace tactus
