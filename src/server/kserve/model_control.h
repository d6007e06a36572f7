// Loading and unloading as clients ask for it, in both protocols: what went wrong is said in words
// that clients made for Triton look for.
#pragma once

#include <string>

#include "base/expected.h"
#include "service/inference_service.h"

namespace tactus {

// Blocking, as InferenceService::Load. Errors begin with "failed to load 'MODEL'" where there is no
// such folder or `config` is given, else with "load failed for model 'MODEL'". kUnavailable is
// passed on as it is: nothing is wrong with the model.
Status LoadOf(InferenceService& service, const std::string& model, const std::string& config);

// Blocking, as InferenceService::Unload. `with_steps`: also what an ensemble's steps run
// ("unload_dependents"). Triton takes a model that is not loaded for unloaded; so does
// `strict_triton`, and it is kNotFound else.
Status UnloadOf(InferenceService& service, const std::string& model, bool with_steps,
                bool strict_triton);

}  // namespace tactus
