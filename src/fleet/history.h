// Who keeps what a leader saw and did. A knowledge base derives from it; this one keeps nothing.
// Calls come from the leader's own thread, and must not wait for long.
#pragma once

#include <cstdint>
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

  // It leads from now on; nothing was planned before.
  virtual void OnLead(TimePoint, std::uint64_t /*term*/) {}
  virtual void OnStanding(TimePoint, const std::string& /*node*/, Standing /*now*/) {}
  virtual void OnReport(TimePoint, const FromNode&) {}
  virtual void OnPlan(TimePoint, PlanId, const FleetInput&, const FleetPlan&) {}
  // The AutoScaler made the plan that OnPlan has just told from the one before. `what`: what it
  // changed and why.
  virtual void OnScaled(TimePoint, PlanId, const std::string& /*what*/) {}
  // All nodes serve this plan of an earlier leader, which holds. How it came to serve everywhere is
  // told by OnRollout if nobody knew.
  virtual void OnTakenUp(TimePoint, PlanId) {}
  // How its roll-out ended; `why` is empty where it was adopted.
  virtual void OnRollout(TimePoint, PlanId, bool /*adopted*/, const std::string& /*why*/) {}
};

}  // namespace tactus
