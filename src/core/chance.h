// The violations of a plan where requests come by chance. Cycles and batches are planned for
// requests that come evenly: of cycles with two requests in the mean, one in seven has four or more
// (Poisson). How long these wait depends on everything else that the lane runs, so lanes are
// simulated as the `planned` policy runs them, those that share models together. The random numbers
// are always the same, so the same plan has the same violations.
#pragma once

#include <vector>

#include "core/planner.h"

namespace tactus {

// Of a model's requests, those that would be late or given up (docs/deadlines.md: violations).
struct ChanceViolations {
  double ratio = 0;
  double error = 0;  // standard, of the ratio: few requests were drawn of a model that is rare
};

// By ModelId. Requests of a model come one by one, independently of each other (Poisson), as many a
// second as `expected_rps` says, and are divided among the model's lanes as the plan divides its
// rate. A model of which nothing is expected has no violations and takes no time. Batches take as
// long as they do alone, slowed as their windows allow for neighbours, in proportion to the time in
// which the device's other lanes are planned to be busy. ValidateLanes holds of `plan`, and each
// model of which something is expected has a lane.
std::vector<ChanceViolations> ViolationsByChance(const Plan& plan, const PlanInput& input);

// Of all models together, by what is expected of each.
ChanceViolations ViolationsOfAll(const std::vector<ChanceViolations>& models,
                                 const PlanInput& input);

// Plans are held to less than the 1 % that a run may have: its own luck comes on top of the mean.
inline constexpr double kMostViolationsByChance = 0.006;
// Whether it is above that by more than its standard error.
bool TooMany(const ChanceViolations& violations);

}  // namespace tactus
