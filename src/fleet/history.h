// Who keeps what a leader saw and did. A knowledge base derives from it; this one keeps nothing.
// Calls come from the leader's own thread, and must not wait for long.
#pragma once

#include <map>
#include <string>

#include "base/serving_time.h"
#include "core/fleet_plan.h"
#include "fleet/membership.h"
#include "fleet/messages.h"

namespace tactus {

class FleetHistory {
 public:
  virtual ~FleetHistory() = default;

  virtual void OnStanding(TimePoint, const std::string& /*node*/, Standing /*now*/) {}
  virtual void OnReport(TimePoint, const FromNode&) {}
  virtual void OnPlan(TimePoint, PlanId, const FleetInput&, const FleetPlan&) {}
  // How its roll-out ended; `why` is empty where it was adopted.
  virtual void OnRollout(TimePoint, PlanId, bool /*adopted*/, const std::string& /*why*/) {}
};

}  // namespace tactus
