// How `tactus serve` writes of what it serves, and `tactus front-end` of what is not ready.
#pragma once

#include <string>

#include "core/model_spec.h"
#include "service/inference_service.h"

namespace tactus {

// "0.797 0.874 0.906 0.921", or "-" where none is known.
std::string AccuracyOf(const ModelSpec& model);
// "1 2 3 4".
std::string ExitsOf(const ModelSpec& model);

// What a user must know of what is served: that there is nothing in the repository, and what would
// be; that devices are emulated.
std::string AboutServed(const std::string& repository, bool empty, bool emulated);

// "a,b": the models that keep the service from being ready.
std::string NotReadyIn(const InferenceService& service);

}  // namespace tactus
