// Answers every request with its own bytes: output i is input i. It measures what everything but
// the model costs, and lets protocol tests send any type and shape.
#pragma once

#include <memory>

#include "core/engine.h"

namespace tactus {

// A model needs its inputs stated. Outputs that are not stated become OUTPUT0, OUTPUT1 ... with the
// types and shapes of the inputs; outputs that are must have them.
std::unique_ptr<Engine> MakeIdentityEngine();

}  // namespace tactus
