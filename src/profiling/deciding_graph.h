// Whether a graph may decide something: a label, a rounding, a threshold.
#pragma once

#include "core/model_spec.h"

namespace tactus {

// Whether an exit's file names an operator whose answer jumps; false for files that cannot be read,
// and for models without any.
bool MayDecide(const ModelSpec& spec);

}  // namespace tactus
