// `tactus serve --plan` and `--planner`: one processor, split into lanes as a file says, or as a
// planner says while the load changes.
#pragma once

#include <memory>
#include <string>

#include "base/expected.h"
#include "runtime/planning_thread.h"
#include "runtime/runtime.h"
#include "serve_options.h"

namespace tactus {

// Whether the lanes are those of a plan.
bool Partitioned(const ServeOptions& options);

// The device: as many cores as its whole profile had threads. Errors: options that do not go with a
// plan; a profile of another machine or engine, or of other threads than its share is, unless
// --allow-other-machine.
Expected<PartitionOptions> ReadPartition(const ServeOptions& options, const std::string& engine);

// Reads the plan in the file and splits the runtime's device as it says. An error, and nothing
// changes, where it does not fit what is served: other models, shares that were not profiled, SLOs
// that it does not keep, memory; or where a lane cannot be had.
Status TakePlan(const std::string& path, Runtime& runtime);

// Of --planner NAME[:OPTIONS]; its averages begin with the rates that the --plan was made for.
Expected<std::unique_ptr<PlanningThread>> MakePlanning(const ServeOptions& options,
                                                       Runtime& runtime,
                                                       PlanningThread::Options parts);

// "as FILE says", "by gpulet", or both.
std::string SplitText(const ServeOptions& options);

}  // namespace tactus
