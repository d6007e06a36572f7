// What gpu-lets' figures ask: which loads can be planned for, up to what rate, how two lanes of the
// simulated device slow each other, and what becomes of plans that run.
#pragma once

#include <string>

#include "reproduction/figure.h"
#include "reproduction/gpulets_planners.h"

namespace tactus {

// The point's answer on its scenario with its settings. `with.of` says which; `with.planner` is one
// of NamedPlanner's:
//   share      of `with.model` on x percent of the device: latency_ms of `with.batch`, rate_rps
//   that
//              the model can have, and is_knee
//   loads      of the 1,023 loads of Section 3.1 (0, 200, 400 or 600 requests/s of each of five
//              models, not all 0): schedulable, how many the planner plans for, and beyond_ideal,
//              of an ideal planner: how many another one plans for and it does not; of gpulet+int
//              as published, which asks for less than ideal+int: how many ideal+int does not
//   largest    MostSchedulable
//   run        RunMost; pipelines: RunMostPipelines; sharing: RunShared at x, `with.sharing` being
//              temporal, unsplit, 20:80 or 40:60
//   overheads  at x percent of the sides of simulated pairs: overhead_percent that they lose
//   errors     and error_percent of the model fitted to 70 % of the pairs, of those held out;
//              errors-of-sides: where sides are drawn one by one, as for what planners count on;
//              errors-of-none: of who expects no slowdown
// kInternal: a plan does not hold what it promises.
Expected<FigureRow> GpuletsAnswer(const FigurePoint& point, const ReproduceOptions& options);

// The largest rate of the scenario's mix, in steps of one percent, that is planned for as are all
// below it: rate_rps, of all models together, and `times` those of the scenario's own rates. The
// planner is asked for `headroom` more of each, as a part of it.
Expected<FigureRow> MostSchedulable(const SetScenario& scenario, const std::string& planner,
                                    double headroom = 0);

}  // namespace tactus
