// The control plane of a simulated fleet: the leader and the nodes' states that serve a cluster
// (fleet/leader.h, fleet/node_state.h), driven in virtual time. Their messages arrive at once and
// none is lost. What is simulated is how long models load and what the nodes measure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "fleet/leader.h"
#include "fleet/node_state.h"
#include "fleet/rate_windows.h"
#include "sim/fleet/fleet_pipelines.h"
#include "sim/network/rate_trace.h"

namespace tactus {

// What the leader's plans change.
class FleetControlWorld {
 public:
  virtual ~FleetControlWorld() = default;
  // From now on the device serves its part of the plan, and routes by it the pipelines that begin
  // there. One of these calls for each device; the first comes when all devices are ready.
  virtual void Serve(DeviceId device, PlanId id, const FleetPlan& plan) = 0;
  virtual void Scaled() = 0;  // the AutoScaler has changed the plan
};

class FleetControl final : private FleetHistory {
 public:
  // `links`: by link, what its rate is when; null: constant. All outlive it.
  FleetControl(const FleetScenario& scenario, const FleetItems& items,
               std::vector<const RateTrace*> links, FleetControlWorld& world);

  // The plan by what is known beforehand: the first minute's counts and rates. An error for an
  // unknown planner.
  Expected<FleetPlan> First() const;
  // The nodes meet and serve this plan. Once, before Step.
  void Start(FleetPlan first);
  // An item of a stage of this model has reached the device.
  void Count(DeviceId device, ModelId model) { ++nodes_[device.value()].arrived[model.value()]; }
  void Step(TimePoint now);
  // When Step has something to do.
  TimePoint Next() const;
  // By link, as the nodes have measured it.
  const FleetLink& link(std::size_t l) const { return links_[l]; }

 private:
  struct Node {
    NodeState state;
    std::vector<std::uint64_t> arrived;  // by model
    RateWindows rates;
    PlanId served;
  };
  struct Load {
    TimePoint ends;
    DeviceId device;
    std::string model;
  };
  struct Measurements {
    TimePoint told;
    std::vector<std::vector<ModelRate>> rates;  // by device
    std::vector<double> mbps;                   // by link; 0: not measured
  };
  void OnPlan(TimePoint, PlanId id, const FleetInput&, const FleetPlan& plan) override;
  void OnScaled(TimePoint, PlanId, const std::string&) override { world_.Scaled(); }
  LeaderOptions OptionsOf(const FleetRun& run) const;
  void Measure(TimePoint now);
  void Tell(const Measurements& seen);
  bool Act(DeviceId device, TimePoint now);
  bool Lead(TimePoint now);

  const FleetScenario& scenario_;
  const std::vector<const RateTrace*> traces_;
  FleetControlWorld& world_;
  FleetInput declared_;
  std::vector<FleetLink> links_;
  std::vector<Node> nodes_;
  std::optional<FleetPlan> first_;  // what the leader gets when it asks for the first plan
  std::optional<FleetLeader> leader_;
  PlanId coming_id_;  // the last plan that the leader made
  FleetPlan coming_;
  std::deque<Load> loads_;
  std::deque<Measurements> measured_;
  TimePoint measure_at_ = kStart;
  TimePoint stepped_ = kStart;
};

}  // namespace tactus
