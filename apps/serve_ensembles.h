// Ensembles of `tactus serve`: where they are declared, and over which runtime they run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ensemble/ensemble_service.h"
#include "log_queue.h"
#include "runtime/runtime.h"
#include "serve_options.h"
#include "service/observer.h"

namespace tactus {

// Those of `models` that are ensembles, or those that are not.
std::vector<std::string> OnlyEnsembles(const ServeOptions& options,
                                       const std::vector<std::string>& models, bool ensembles);

// Opened: what can serve does. `runtime` and `observer` outlive it.
std::unique_ptr<EnsembleService> ServeEnsembles(const ServeOptions& options, Runtime& runtime,
                                                Observer& observer, const Log& log);

}  // namespace tactus
