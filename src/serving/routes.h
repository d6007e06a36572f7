// A server as the worker of a node (docs/reference/cluster.md): it sends steps of its pipelines to
// other nodes as its agent says.
#pragma once

#include <memory>
#include <string>

#include "cluster/steps/routed_steps.h"
#include "ensemble/ensemble_service.h"
#include "platform/repeated_task.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"

namespace tactus {

// Reads the file whenever it changes, has `steps` follow it, and has the service serve the
// pipelines of which it speaks. What makes no sense is told, and the last that did holds. `steps`
// and `service` outlive it.
std::unique_ptr<RepeatedTask> FollowRoutes(const ServeOptions& options, RoutedSteps& steps,
                                           EnsembleService& service, Log log);

// Measures the ways to other nodes once a second and tells them in a file beside the routes.
// `steps` outlives it.
std::unique_ptr<RepeatedTask> MeasureLinks(const ServeOptions& options, RoutedSteps& steps,
                                           Log log);

}  // namespace tactus
