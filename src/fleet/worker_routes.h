// What a node's worker is told of the plan: where each step of its pipelines runs, and where that
// is. Made of what the node keeps, so it is the same after a restart and without a controller.
#pragma once

#include <string>
#include <vector>

#include "fleet/messages.h"
#include "fleet/node_state.h"

namespace tactus {

struct WorkerTarget {
  std::string node;
  std::string address;  // HOST:PORT, gRPC; empty: nobody has said, or it is here
  double weight = 1;    // of the step's calls, beside those of its other targets
  bool here = false;    // the worker itself

  bool operator==(const WorkerTarget&) const = default;
};
struct WorkerRoute {
  std::string pipeline;
  std::string stage;  // the name of the ensemble's step
  std::string model;
  std::vector<WorkerTarget> to;

  bool operator==(const WorkerRoute&) const = default;
};
struct WorkerRoutes {
  PlanId plan;
  std::vector<WorkerRoute> routes;

  bool operator==(const WorkerRoutes&) const = default;
};

WorkerRoutes RoutesOf(const NodeKept& kept, const std::string& node);

}  // namespace tactus
