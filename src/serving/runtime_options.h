// The options of `tactus serve` as the runtime has them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"
#include "runtime/runtime.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"

namespace tactus {

// With the folders of its `models`, which all parts of a server share.
ServeOptions WithFolders(ServeOptions options);
// An error for a folder of `models` that is no repository but a model's own, and for models that
// are named where all are loaded anyway.
Status CheckModels(const ServeOptions& options);
// What a plan calls a model that needs no others (src/cluster/models): reads every byte of it.
Expected<std::string> DigestOfModel(const std::filesystem::path& folder);
// The platforms whose models run; empty: with an engine for all of them it does not matter which
// one a model was made for.
std::vector<std::string> PlatformsOf(const ServeOptions& options);
RuntimeOptions RuntimeOptionsOf(const ServeOptions& options);
// Of the models that run on the device: no ensembles, no operators. `log` gets what in their
// configurations changes nothing.
RepositoryOptions RepositoryOptionsOf(const ServeOptions& options, const Log& log);

}  // namespace tactus
