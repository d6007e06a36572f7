// Loading and unloading as clients ask for it, in both protocols: what went wrong is said in words
// that clients made for Triton look for.
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"
#include "service/inference_service.h"
#include "service/model_folders.h"

namespace tactus {

// What a client gives with a load, in place of what the repository has.
struct LoadOverride {
  std::string config;  // a ModelConfig as JSON; empty: none
  ModelFiles files;    // all of the model's folder; empty: none
};

// The parameters of a load that are files begin with it; the path follows.
inline constexpr std::string_view kFilePrefix = "file:";

// Blocking, as InferenceService::Load. Errors begin with "failed to load 'MODEL'" where there is no
// such folder or something is given, else with "load failed for model 'MODEL'". kUnavailable is
// passed on as it is: nothing is wrong with the model. Files are kept in `folders` if the load
// succeeds; null: this server takes none, kUnimplemented.
Status LoadOf(InferenceService& service, ModelFolders* folders, const std::string& model,
              const LoadOverride& given);

// Blocking, as InferenceService::Unload. `with_steps`: also what an ensemble's steps run
// ("unload_dependents"). Triton takes a model that is not loaded for unloaded; so does
// `strict_triton`, and it is kNotFound else. What clients sent for a model that is unloaded goes
// out of `folders`, which may be null.
Status UnloadOf(InferenceService& service, ModelFolders* folders, const std::string& model,
                bool with_steps, bool strict_triton);

}  // namespace tactus
