// `tactus serve --plan` and `--planner`: one processor, split into lanes as a file says, or as a
// planner says while the load changes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/expected.h"
#include "platform/repeated_task.h"
#include "runtime/layout/planning_thread.h"
#include "runtime/runtime.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"

namespace tactus {

// Whether the lanes are those of a plan.
bool SplitsDevice(const ServeOptions& options);

// An error for options that do not go with a plan, or not without one.
Status CheckPlanOptions(const ServeOptions& options);

// The device of options that fit: the engine's own, or as many cores as its whole profile had
// threads. An error for a profile of another machine or engine, or of other threads than its share
// is, unless --allow-other-machine; and for shares on which the --planner never plans anything.
Expected<SplitOptions> ReadSplit(const ServeOptions& options, const EngineTraits& engine);

// Reads the plan in the file and splits the runtime's device as it says. An error, and nothing
// changes, where it does not fit what is served: other models, shares that were not profiled, SLOs
// that it does not keep, memory; or where a lane cannot be had. The log says where SLOs are others
// than the plan was made for.
Status TakePlan(const std::string& path, Runtime& runtime, const Log& log);

// Does the same whenever it is woken, for SIGHUP: a change lasts as long as what runs on old lanes,
// and who asks may have other things to wait for. The log says what came of it.
std::unique_ptr<RepeatedTask> TakePlanWhenWoken(std::string path, Runtime& runtime, Log log);

// Of --planner NAME[:OPTIONS]; its averages begin with the rates that the --plan was made for.
Expected<std::unique_ptr<PlanningThread>> MakePlanning(const ServeOptions& options,
                                                       Runtime& runtime,
                                                       PlanningThread::Options parts);

// "as FILE says", "by gpulet", or both.
std::string SplitText(const ServeOptions& options);

}  // namespace tactus
