// For tests: two nodes, server0 and edge0, that load at once or refuse to, and outlive the leaders
// that they obey one after the other. In virtual time.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "fleet/fleet_world_test.h"
#include "fleet/leader.h"
#include "fleet/node_state.h"

namespace tactus {

struct TwoNodes {
  TwoNodes() {
    server.WorkerUp({}, "", "");
    edge.WorkerUp({}, "", "");
  }

  // Until nothing is said any more; then `time` later.
  void Pass(FleetLeader& leader, Duration time) {
    for (bool quiet = false; !quiet;) {
      quiet = true;
      for (NodeState* node : {&server, &edge}) {
        if (node == &edge ? edge_is_away : server_is_away) continue;
        NodeActions actions = node->Take(now);
        if (actions.keep) node->WasKept();
        for (const ModelRef& each : actions.place) node->Placed(each.name);
        for (const std::string& model : actions.load) {
          const bool refuses = node == &server && server_refuses;
          if (refuses) node->LoadFailed(model, "no memory", now);
          if (!refuses) node->Loaded(model);
        }
        for (const std::string& model : actions.unload) node->Unloaded(model);
        for (const FromNode& message : actions.send) leader.Receive(message, now);
        quiet = quiet && actions.send.empty() && actions.load.empty() && actions.place.empty();
      }
      leader.Step(now);
      const LeaderActions actions = leader.Take();
      if (actions.keep) leader.WasKept();
      for (const ToNode& order : actions.send) {
        if (order.node == "edge0" ? edge_is_away : server_is_away) continue;
        (order.node == "server0" ? server : edge).Receive(order, now);
      }
      quiet = quiet && actions.send.empty();
    }
    now += time;
  }
  void PassSeconds(FleetLeader& leader, int seconds) {
    for (int i = 0; i < seconds; ++i) Pass(leader, Seconds(1));
  }
  // As to a controller that has just been started.
  void Connect() {
    server.Connected();
    edge.Connected();
  }

  static FleetInput Fleet() { return FleetWorld::MadeFleet(1, 1); }
  static Expected<FleetPlan> OnTheFirst(const FleetInput& input) {
    FleetPlan plan;
    for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
      plan.instances.push_back({FleetPipelineId{p}, FleetStageId{0}, DeviceId{0}});
    }
    plan.routes = RoutesOf(plan.instances);
    return plan;
  }

  TimePoint now = kStart;
  bool edge_is_away = false;
  bool server_is_away = false;
  bool server_refuses = false;
  NodeState server{{.name = "server0"}, {.who = {1, 1}}};
  NodeState edge{{.name = "edge0"}, {.who = {2, 1}}};
};

}  // namespace tactus
