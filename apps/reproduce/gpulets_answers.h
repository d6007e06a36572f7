// What gpu-lets' figures ask that planners alone answer: which loads can be planned for, up to what
// rate, and how two lanes of the simulated device slow each other.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "planners/gpulet/interference_fit.h"
#include "reproduce/figure.h"

namespace tactus {

// The planners by the names of their bars; `+int` count on interference.
inline constexpr const char* kSbp = "SBP";
inline constexpr const char* kSbpHalves = "SBP on halves";
inline constexpr const char* kSelfTuning = "self-tuning";
inline constexpr const char* kGpulet = "gpulet";
inline constexpr const char* kGpuletRetry = "gpulet-retry";
inline constexpr const char* kIdeal = "ideal";
inline constexpr const char* kGpuletInt = "gpulet+int";
inline constexpr const char* kGpuletRetryInt = "gpulet-retry+int";
inline constexpr const char* kIdealInt = "ideal+int";
inline constexpr std::array kPlannerNames = {kSbp,       kSbpHalves,      kSelfTuning,
                                             kGpulet,    kGpuletRetry,    kIdeal,
                                             kGpuletInt, kGpuletRetryInt, kIdealInt};

// The 1,023 loads of Section 3.1 (0, 200, 400 or 600 requests/s of each of five models, not all 0)
// on the devices of `scenario`, a file:
//   schedulable   how many the planner plans for
//   beyond_ideal  of an ideal planner: how many another one plans for and it does not
// kInternal: a plan does not hold what it promises.
Expected<FigureRow> CountSchedulable(const std::string& scenario, const std::string& planner,
                                     double exponent);

// The largest rate of the scenario's mix, in steps of one percent, that is planned for as are all
// below it: rate_rps, of all models together, and `times` those of the scenario's own rates.
Expected<FigureRow> MostSchedulable(const std::string& scenario, const std::string& planner,
                                    double exponent);

// On `percent` of the device, one of the profiled shares: latency_ms of a batch of `batch` of the
// model, rate_rps that the model can have of it, and is_knee.
Expected<FigureRow> OnShare(const std::string& scenario, std::size_t model, int batch,
                            double percent, double exponent);

// The pairs of Section 3.2 on the simulated device: each two of the scenario's models, batches of 2
// to 32, five splits; a sample for each side.
Expected<std::vector<InterferenceSample>> SimulatedPairs(const std::string& scenario);
// Ascending: what each side loses, as a part of its time alone; and of the 30 % that are held out
// how far the fitted model is off, and how far is who expects no slowdown.
Expected<std::vector<double>> SimulatedOverheads(const std::string& scenario);
Expected<std::vector<double>> SimulatedErrors(const std::string& scenario);
Expected<std::vector<double>> SimulatedErrorsOfNone(const std::string& scenario);
// The linear model fitted to 70 % of them: what the `+int` planners count on.
Expected<InterferenceModel> SimulatedInterference(const std::string& scenario);

}  // namespace tactus
