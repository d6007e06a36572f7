// The options of `tactus serve` as the runtime has them.
#pragma once

#include "log_queue.h"
#include "runtime/runtime.h"
#include "serve_options.h"

namespace tactus {

// Models that are named where all are loaded anyway.
Status CheckLoadedModels(const ServeOptions& options);
RuntimeOptions RuntimeOptionsOf(const ServeOptions& options);
// Of the models that run on the device: no ensembles, no operators. `log` gets what in their
// configurations changes nothing.
RepositoryOptions RepositoryOptionsOf(const ServeOptions& options, const Log& log);

}  // namespace tactus
