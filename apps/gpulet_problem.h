// What gpu-lets' planners are asked for a scenario, where only the whole device was measured.
#pragma once

#include <memory>
#include <vector>

#include "core/planner.h"
#include "experiment.h"

namespace tactus {

struct GpuletProblem {
  ProfileTable profile;
  PlanInput input;  // points to `profile`
};

// The scenario's models at its rates, its lanes as devices, with latencies on `shares` of a device
// (ascending, below 1; all of it comes last) by the stand-in of planners/gpulet/share_latency.h.
Expected<std::unique_ptr<GpuletProblem>> MakeGpuletProblem(const Experiment& experiment,
                                                           std::vector<double> shares,
                                                           double exponent);

}  // namespace tactus
