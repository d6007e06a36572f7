// Elastic partitioning (gpu-lets, Algorithm 1): each model, the most asked-for first, gets gpu-lets
// of the size at which another percent of the device stops paying (the knee of what it sustains
// over its size), or of the size that it needs if that is smaller; what can share time with another
// gpu-let does.
#pragma once

#include <cstdint>

#include "planners/gpulet/interference.h"

namespace tactus {

struct ElasticOptions {
  // Lanes of a device slow each other by this; nothing: they are taken not to (the paper's
  // `gpulet`, against `gpulet+int`). Outlives the call.
  const InterferenceModel* interference = nullptr;
  // The guided self-tuning of the paper's comparison (after GSLICE): always the knee, and nobody
  // shares time with another.
  bool self_tuning = false;
  // What ours checks of interference beyond the paper's Algorithm 1, whose line 28 asks it of the
  // newcomer alone: whether those in the device's other lane bear the newcomer too, and whether a
  // lane that has no neighbour yet would bear the worst one.
  bool neighbours_bear_it = true;
  bool expects_the_worst = true;
  std::uint64_t epoch = 0;
};

// kResourceExhausted: which model has no place for all of its rate, and whether memory is in its
// way. What CheckPlannable says.
Expected<Plan> PlanElastic(const PlanInput& input, const ElasticOptions& options);

struct ElasticRetryOptions {
  const InterferenceModel* interference = nullptr;  // as in ElasticOptions
  int rounds = 4;                                   // of each share rule, at most
  std::uint64_t epoch = 0;
};

// Ours: PlanElastic's plan where it finds one, else the algorithm again and again until everybody
// is sustained. Whoever fell short is first in the next round; after `rounds` of them another rule
// says what gpu-let a model asks for: first the paper's, then what sustains the rest of its rate
// alone, then the size that sustains most for each percent of it if that is smaller; with
// interference also without a neighbour in mind, with the mildest, and whole devices. Where
// no free gpu-let helps, a part of the rate goes to the one in use that can take most of it. The
// error is that of the round that lacked least.
// A model with too many violations by chance (core/chance.h) is planned for as if it asked for
// more, by steps, as long as there is a plan for that; then the next rule is tried.
Expected<Plan> PlanElasticRetrying(const PlanInput& input, const ElasticRetryOptions& options);

// The lane class at the knee of the model's affordable rate over the share of the device: where the
// curve through (0, 0) and the profiled shares, both axes scaled to 1, bends most. The whole device
// where it never bends: then each percent pays as well as the one before. (The paper: "the knee,
// where the curvature has the local maximum".)
LaneClass Knee(const PlanInput& input, ModelId m);

}  // namespace tactus
