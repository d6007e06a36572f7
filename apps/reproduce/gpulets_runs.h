// What gpu-lets' figures ask of plans that run: what is lost where lanes of a device slow each
// other (Figure 13).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reproduce/figure.h"
#include "reproduce/gpulets_planners.h"

namespace tactus {

// Planned for beyond the rates that arrive, as a Poisson process brings them in bunches. With none,
// plans lose more than 1 % even where lanes do not slow each other (Figure 13-headroom).
inline constexpr double kHeadroom = 0.15;

// The planner's largest rate of the scenario's mix with `headroom`, and runs of its plan
// at that rate:
//   rate_rps       of all models
//   bad_percent    late or dropped, of the seeds' runs the one in the middle, as in the paper
//   worst_percent  and the largest of them
//   alone_percent  the one in the middle where lanes do not slow each other
Expected<FigureRow> RunMost(const SetScenario& scenario, const std::string& planner,
                            double headroom, const ReproduceOptions& options);

// The same for a scenario whose models' requests all come with frames of one pipeline, when they
// do: rate_fps, and of frames bad_percent, worst_percent and alone_percent. requests_percent is
// RunMost's bad_percent.
Expected<FigureRow> RunMostFrames(const SetScenario& scenario, const std::string& planner,
                                  double headroom, const ReproduceOptions& options);

// Those of the 1,023 loads for which the planner has a plan, with `headroom`, each run once:
// rate_rps and bad_percent by the load's number.
Expected<std::map<double, FigureRow>> RunLoads(const SetScenario& scenario,
                                               const std::string& planner,
                                               double headroom = kHeadroom);

// What it costs to ask for more, or less, before a load is planned for:
//   schedulable    of the 1,023 loads
//   gain_percent   largest rate over SBP's, mean of `mixes`
//   run, missed    of RunLoads: those that were run, and those that lost more than 1 %
//   worst_percent  what the worst of them lost
//   bare_missed, bare_worst_percent
//                  the same of all that are schedulable, planned for just what arrives
Expected<FigureRow> RunChecked(const SetScenario& scenario, const std::vector<SetScenario>& mixes,
                               const std::string& planner);

// Figures 12 and 13 of `mixes` in two numbers:
//   gain_percent  largest rate over SBP's, mean of the mixes
//   bad_percent   RunMost's of the worst mix, with kHeadroom
Expected<FigureRow> RunMixes(const std::vector<SetScenario>& mixes, const std::string& planner,
                             const ReproduceOptions& options);

// How two models share one device: one after another on all of it; each in a process of its own,
// on all of it; or each on a part of it.
enum class Sharing { kTemporal, kUnsplit, k20And80, k40And60 };

// LeNet and VGG-16, each at `rate_rps`, on one device (Figure 5): bad_percent of both together,
// lenet_bad_percent and vgg_bad_percent, run once, with the batches, of 1 to 32 in powers of two,
// with which least is lost in that way of sharing: lenet_batch and vgg_batch.
Expected<FigureRow> RunShared(const SetScenario& scenario, Sharing sharing, double rate_rps);

}  // namespace tactus
