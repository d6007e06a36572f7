// What gpu-lets' figures ask that planners alone answer: which loads can be planned for, up to what
// rate, and how two lanes of the simulated device slow each other.
#pragma once

#include <string>
#include <vector>

#include "reproduce/figure.h"
#include "reproduce/gpulets_planners.h"

namespace tactus {

// The rates of load 1 to 1,023 of CountSchedulable, by model.
void SetLoad(int load, PlanInput& input);

// The 1,023 loads of Section 3.1 (0, 200, 400 or 600 requests/s of each of five models, not all 0)
// on the devices of `scenario`:
//   schedulable   how many the planner plans for
//   beyond_ideal  of an ideal planner: how many another one plans for and it does not; of
//                 gpulet+int as published, which asks for less than ideal+int: how many it plans
//                 for and ideal+int does not
// kInternal: a plan does not hold what it promises.
Expected<FigureRow> CountSchedulable(const SetScenario& scenario, const std::string& planner);

// The largest rate of the scenario's mix, in steps of one percent, that is planned for as are all
// below it: rate_rps, of all models together, and `times` those of the scenario's own rates. The
// planner is asked for `headroom` more of each, as a part of it.
Expected<FigureRow> MostSchedulable(const SetScenario& scenario, const std::string& planner,
                                    double headroom = 0);

// On `percent` of the device, one of the profiled shares: latency_ms of a batch of `batch` of the
// model, rate_rps that the model can have of it, and is_knee.
Expected<FigureRow> OnShare(const SetScenario& scenario, std::size_t model, int batch,
                            double percent);

// Ascending: what each side of the simulated pairs loses, as a part of its time alone.
Expected<std::vector<double>> SimulatedOverheads(const SetScenario& scenario);
// Ascending: of the 30 % of the pairs that are held out how far the model fitted to the others is
// off, and how far is who expects no slowdown; and the former of 30 % of the sides, with the model
// that planners count on.
Expected<std::vector<double>> SimulatedErrors(const SetScenario& scenario);
Expected<std::vector<double>> SimulatedErrorsOfNone(const SetScenario& scenario);
Expected<std::vector<double>> SimulatedErrorsOfSides(const SetScenario& scenario);

}  // namespace tactus
