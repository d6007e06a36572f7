// A planner answers the slow questions: how devices are split into lanes, which models each lane
// serves, in what batches. Same input, same plan.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/device_limits.h"
#include "core/plan.h"
#include "core/profile_table.h"

namespace tactus {

struct PlannedModel {
  std::string name;
  double rate_rps = 0;   // that must be sustained
  Duration slo{};        // from arrival to answer
  double memory_mb = 0;  // on every device that serves it
  // Mean rate if arrivals are Poisson (core/chance.h); `rate_rps` minus this is headroom. 0: not
  // known, or requests come evenly.
  double expected_rps = 0;
};

struct PlanInput {
  std::vector<PlannedModel> models;  // by ModelId
  const ProfileTable* profile = nullptr;
  // By lane class: the share of a device that such a lane has, in (0, 1], ascending. The last is 1.
  std::vector<double> shares;
  int devices = 1;
  DeviceLimits device = {};  // what each of them can hold

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

// As Validate, and whether planning can succeed at all: whether each model that has load meets half
// of its SLO in some batch on some share, alone (a request waits as long as a batch before its own
// runs), and whether the devices have memory for all of them. kInvalidArgument, with the model:
// another division of the devices, or less load, would not help.
Status CheckPlannable(const PlanInput& input);

// Whether the plan does what `input` asks: lanes that the profile knows and that fit their devices
// in share and memory, windows that are disjoint and long enough, each request answered within its
// SLO (a cycle and its own batch later, Nexus's arithmetic), every model's rate sustained, few
// violations where requests come by chance (core/chance.h). The error names lane, model and what is
// missing.
Status Validate(const Plan& plan, const PlanInput& input);
// The same but for the rates and chance: whether the plan may serve, whatever fraction of the load
// it is for.
Status ValidateLanes(const Plan& plan, const PlanInput& input);

// What models need together on a device that serves them: "1200 MB ('a' 600, 'b' 600)".
std::string MemoryText(const PlanInput& input, std::span<const ModelId> models);
// "the models of device 0 need 1200 MB ('a' 600, 'b' 600); it has 1000".
std::string TooMuchMemory(const PlanInput& input, int device, std::span<const ModelId> models);

// Where no plan sustains all rates of the input: the largest fraction of them that has one, by
// halving, to a 64th.
struct PartialPlan {
  double part = 0;
  std::optional<Plan> plan;  // none where not even a 64th has
};
using Solver = std::function<Expected<Plan>(const PlanInput& input)>;
PartialPlan LargestPart(const PlanInput& input, const Solver& solve);
// What each model lacks where only this fraction of its rate is sustained: "60 % of the load would
// fit; 'a' lacks 4 of 10 requests/s"; "less than 2 %" for 0, since LargestPart tries nothing
// smaller.
std::string DescribeShortage(const PlanInput& input, double part);

class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string_view name() const = 0;
  // kInvalidArgument, with the remedy, where it plans nothing for devices that may have just these
  // shares, whatever the load.
  virtual Status Suits(std::span<const double>) const { return {}; }
  // kResourceExhausted where the load cannot be sustained: what is in the way, as far as the
  // planner knows. LargestPart tells how much is missing. What CheckPlannable says where none could
  // be.
  virtual Expected<Plan> Solve(const PlanInput& input) = 0;
};

}  // namespace tactus
