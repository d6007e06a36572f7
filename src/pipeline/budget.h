// How a pipeline's end-to-end SLO becomes a deadline for each of its stages. All durations by
// StageId; deadlines count from the request's arrival.
#pragma once

#include <span>
#include <vector>

#include "base/serving_time.h"
#include "pipeline/graph.h"

namespace tactus {

// The stages on the longest path, first to last, by what each takes.
std::vector<StageId> LongestPath(const PipelineGraph& graph, std::span<const Duration> latency);
// What they take together.
Duration PathLength(std::span<const StageId> path, std::span<const Duration> latency);

// Budgets as they were stated: a stage must be answered `budget` after the last deadline of those
// that it waits for.
std::vector<Duration> DeadlinesByBudget(const PipelineGraph& graph,
                                        std::span<const Duration> budget);

// In proportion to latency, which is positive: a stage's deadline is to the SLO as the longest path
// up to its end is to the longest path through it.
//
// So the last stages, also those of a short branch, have until the SLO; a stage's deadline is later
// than those of all that it waits for; and where the longest path takes no longer than the SLO,
// every budget is at least the stage's latency.
std::vector<Duration> DeadlinesByLatency(const PipelineGraph& graph,
                                         std::span<const Duration> latency, Duration slo);

// The budget of each stage: from the last deadline of those it waits for to its own.
std::vector<Duration> BudgetsOf(const PipelineGraph& graph, std::span<const Duration> deadline);

// The longest path from each stage's end to the request's answer.
std::vector<Duration> LeastAfter(const PipelineGraph& graph, std::span<const Duration> latency);

// The deadline of a stage that starts now: of the time that is left it has what it needs of what it
// and the longest path behind it need. All of it where nothing is behind it.
TimePoint Redivide(TimePoint now, TimePoint deadline, Duration need, Duration behind);

}  // namespace tactus
