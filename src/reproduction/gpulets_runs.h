// What gpu-lets' figures ask of plans that run: which violations there are where lanes of a device
// slow each other (Figure 13).
#pragma once

#include <string>

#include "reproduction/figure.h"
#include "reproduction/gpulets_planners.h"

namespace tactus {

// Planned for beyond the rates that arrive, as a Poisson process brings them in bunches. With none,
// plans have more than 1 % violations even where lanes do not slow each other.
inline constexpr double kHeadroom = 0.15;

// The planner's largest rate of the scenario's mix with kHeadroom, and runs of its plan at that
// rate:
//   rate_rps       of all models
//   bad_percent    violations, of the seeds' runs the one in the middle, as in the paper
//   worst_percent  and the largest of them
//   alone_percent  the one in the middle where lanes do not slow each other
Expected<FigureRow> RunMost(const SetScenario& scenario, const std::string& planner,
                            const ReproduceOptions& options);

// The same for a scenario whose models' requests all come with requests of one pipeline, when they
// do: pipeline_rps, and of pipeline requests bad_percent, worst_percent and alone_percent.
// requests_percent is RunMost's bad_percent.
Expected<FigureRow> RunMostPipelines(const SetScenario& scenario, const std::string& planner,
                                     const ReproduceOptions& options);

// How two models share one device: one after another on all of it; each in a process of its own,
// on all of it; or each on a part of it.
enum class Sharing { kTemporal, kUnsplit, k20And80, k40And60 };

// LeNet and VGG-16, each at `rate_rps`, on one device (Figure 5): bad_percent of both together,
// lenet_bad_percent and vgg_bad_percent, run once, with the batches, of 1 to 32 in powers of two,
// with the fewest violations in that way of sharing: lenet_batch and vgg_batch.
Expected<FigureRow> RunShared(const SetScenario& scenario, Sharing sharing, double rate_rps);

}  // namespace tactus
