// How `tactus serve` writes of a model's exits.
#pragma once

#include <string>

#include "core/model_spec.h"

namespace tactus {

// "0.797 0.874 0.906 0.921", or "-" where none is known.
std::string AccuracyOf(const ModelSpec& model);
// "1 2 3 4".
std::string ExitsOf(const ModelSpec& model);

}  // namespace tactus
