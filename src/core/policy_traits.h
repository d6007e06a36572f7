// What a policy says of itself before its first question. It is set when the policy is made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

// The simulated time of decisions. In real time, decisions take real time.
struct DecisionCost {
  std::optional<Duration> launch;     // each decision that launches a batch
  std::optional<Duration> candidate;  // each candidate of Policy::examined()
};

// A lower bound on the time from the decision for a request that comes alone to the end of its
// batch: margin * latency at the final exit, or at the quickest, of the smallest batch allowed, on
// the best lane, plus delay. The policy gives up a request that has less time left, or does not run
// it.
struct LeastService {
  std::vector<int> sizes = {};  // allowed batch sizes; empty: any
  double margin = 1;
  Duration delay{};
  bool quickest_exit = false;  // for policies with early exits
};

struct PolicyTraits {
  std::string name;  // with its options: "edgeserving:batch=1"
  // Nothing if it serves requests however late they are.
  std::optional<LeastService> least = {};
  // It needs a device that stops batches of lower priority between their kernels and resumes them
  // later (XSched). Only the simulator has one.
  bool suspends = false;
  // The planner whose plans the policy reads. A driver that knows it hands over a first plan at the
  // start and a new one every epoch; until then, and in drivers that do not, view.plan is null and
  // the policy must do without. Empty: it reads none.
  std::string planner = {};
  Duration epoch = kNever - kStart;
  // A driver has its own figure for what is not set.
  DecisionCost decision_cost = {};
};

}  // namespace tactus
