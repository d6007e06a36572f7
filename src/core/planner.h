// A planner answers the slow questions: how devices are split into lanes, which models each lane
// serves, in what batches. Same input, same plan.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/plan.h"
#include "core/profile_table.h"

namespace tactus {

struct PlannedModel {
  std::string name;
  double rate_rps = 0;   // that must be carried
  Duration slo{};        // from arrival to answer
  double memory_mb = 0;  // on every device that serves it
};

struct PlanInput {
  std::vector<PlannedModel> models;  // by ModelId
  const ProfileTable* profile = nullptr;
  // By lane class: the share of a device that such a lane has, in (0, 1], ascending. The last is 1.
  std::vector<double> shares;
  int devices = 1;
  double device_memory_mb = std::numeric_limits<double>::infinity();

  LaneClass whole() const { return LaneClass{static_cast<LaneClass::rep>(shares.size() - 1)}; }
  double share(LaneClass c) const { return shares[c.value()]; }
  // At the final exit.
  Duration Latency(ModelId m, int batch, LaneClass c) const {
    return profile->Latency(m, ExitId{static_cast<ExitId::rep>(profile->exits(m) - 1)}, batch, c);
  }
};

// kInvalidArgument, with the place, for input that no planner can read: no devices, shares that do
// not ascend to 1, a profile of other models or lane classes.
Status Validate(const PlanInput& input);

// Whether the plan does what `input` asks: lanes that the profile knows and that fit their devices
// in share and memory, windows that are disjoint and long enough, each request answered within its
// SLO (a cycle and its own batch later, Nexus's arithmetic), every model's rate carried. The error
// names lane, model and what is missing.
Status Validate(const Plan& plan, const PlanInput& input);

// For a planner that cannot tell which model is in the way: the largest part of all rates that
// `fits`, to a percent, and what each model lacks then: "60 % of the load would fit; 'a' lacks 4 of
// 10 requests/s".
std::string WhatEachLacks(const PlanInput& input, const std::function<bool(double part)>& fits);

class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string_view name() const = 0;
  // kResourceExhausted where the load cannot be carried: which model lacks how much.
  virtual Expected<Plan> Solve(const PlanInput& input) = 0;
};

}  // namespace tactus
