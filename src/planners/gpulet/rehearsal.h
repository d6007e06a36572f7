// What a plan will lose, before it serves. A plan's arithmetic (core/planner.h: Validate) is of
// requests that come evenly; by chance they come in bunches, and where cycle and batch fill the SLO
// a bunch has no time to wait. So the plan is rehearsed: each lane alone, in virtual time, with
// Poisson arrivals, in turns as the policy `planned` takes them.
#pragma once

#include "core/planner.h"

namespace tactus {

struct Rehearsal {
  double lost = 0;        // part of all requests that are late or given up
  double worst_lost = 0;  // of the model that loses most
  ModelId worst;
};

// `input` with the rates that arrive, without headroom. Batches take as long as their windows allow
// (beside neighbours longer than by the profile). A model's requests are divided among its lanes by
// what the plan lets each carry, and each lane has a queue of its own: `planned` lets lanes help
// each other, and loses less. The same plan and rates always give the same.
Rehearsal Rehearse(const Plan& plan, const PlanInput& input);

struct CarriedOptions {
  double headroom = 0.25;   // the least, as a part of the rates
  double most_lost = 0.005;  // of all requests, by the rehearsal
};

struct CarriedPlan {
  Plan plan;
  double headroom = 0;  // that it was made for
  Rehearsal rehearsal;
};

// The plan of `solve` that has the least headroom, from `headroom` on in steps, and loses no more
// than `most_lost` in a rehearsal of the rates of `input`. kResourceExhausted where there is none:
// what `solve` says, and what the last of its plans would lose.
Expected<CarriedPlan> SolveCarried(const PlanInput& input, const Solver& solve,
                                   const CarriedOptions& options);

}  // namespace tactus
