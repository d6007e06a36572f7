// Answers that look into a policy that predicts: how its errors and the latencies are spread, and
// how it goes on learning through a long trace.
#pragma once

#include <string>

#include "experiment/experiment.h"
#include "reproduction/figure.h"

namespace tactus {

// A row at x = percent, from 1 to 99 by 1 and 99.5, 99.9, 100, each figure the mean over the seeds:
//   high_ms, low_ms          latency of answered requests by priority
//   kernel_error_percent     |predicted - actual| over actual, of batches that had neighbours
//   latency_error_percent    the same of the whole latency, from the first request's arrival
//   overhead_percent         what the neighbours cost the kernels
// and at x = 0 high_bad_percent, low_bad_percent. The policy learns from `point.learnt_from` first,
// and the errors of that run are not counted.
Expected<FigureData> Distributions(const std::string& label, Experiment& experiment,
                                   const FigurePoint& point, const ReproduceOptions& options);

// A run for each minute of the scenario's schedule at that minute's rates, one seed, each going on
// from what the one before it has learnt; what waits at the end of a minute is served before the
// next. At x = minute: offered_rps, goodput_rps, high_bad_percent, low_bad_percent, and of the
// kernels' prediction errors with their sign error_p5_percent, error_p50_percent,
// error_p95_percent. The same columns also as series of their own: "rate: ...", "violations: ...",
// "error: ...".
Expected<FigureData> Minutes(const std::string& label, const Experiment& experiment,
                             const ReproduceOptions& options);

}  // namespace tactus
