// Answers to a figure's questions, by simulation.
#pragma once

#include "experiment/experiment.h"
#include "reproduction/figure.h"

namespace tactus {

// The point's scenario with its settings and its profile.
Expected<Experiment> LoadPoint(const FigurePoint& point, const ReproduceOptions& options);

// The rows of one point: of the series `label`, and for a timeline of "LABEL: MODEL" as well.
//
// Every row has offered_rps, goodput_rps, bad_percent, p50_ms, p95_ms, p99_ms, mean_batch,
// queue_p50_ms, queue_p99_ms, lanes_touched and busy_percent, as means over the seeds; with exits,
// accuracy_percent, accuracy_limit_percent and the exits' shares by name; with two priorities,
// high_ and low_ bad_percent, p50_ms, p95_ms, p99_ms; of a policy that predicts, error_p50_percent,
// error_p95_percent, error_p99_percent. Besides:
//   kPeak           peak_rps and its half_width_rps, of_fluid, of_staggered for one model, and
//                   overload: the goodput at 1.5 times the peak over the peak's
//   kLeastLanes     lanes; fluid_lanes, which no policy without drops can do with
//   kBatchSizes     at x = size: percent of the batches that are no larger
//   kQueueingDelay  at x = percentile: delay_ms, of answered requests
//   kDistributions, kMinutes: prediction_answers.h; kPartition: partition_answer.h; kScheduler:
//   scheduler_answer.h; kGpulets: gpulets_answers.h; kFleet:
//   fleet_answers.h
//   kTimeline       at x = seconds: offered_rps, goodput_rps, bad_percent, and for all models
//                   together open_lanes, advised_lanes, busy_lanes; where devices are split anew,
//                   share_percent of them in use, each 100
Expected<FigureData> Answer(Question question, const std::string& label, const FigurePoint& point,
                            const ReproduceOptions& options);

}  // namespace tactus
