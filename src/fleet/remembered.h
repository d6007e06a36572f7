// What a leader that starts is told of those before it, by whoever keeps a cluster's history. All
// of it may be missing: then it begins with what the nodes say.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/fleet_plan.h"
#include "fleet/messages.h"

namespace tactus {

// A plan of the declared fleet that the nodes may be serving.
struct RememberedPlan {
  PlanId id;
  std::set<std::string> nodes;   // that it was made for
  std::vector<FleetLink> links;  // that it was made for
  bool adopted = false;          // false: nobody saw how its roll-out ended
  // By the ids of the declared fleet without the other nodes, for changes between two plans. None:
  // it is not changed before the next one is made.
  std::optional<FleetPlan> plan = {};
};

struct Remembered {
  std::vector<RememberedPlan> plans;
  // The links of the declared fleet as they were lately: they hold until they are measured anew,
  // for LeaderOptions::links_hold.
  std::vector<FleetLink> links;
};

}  // namespace tactus
