// For engines whose models have no default for an input that a request leaves out.
#pragma once

#include <string>

#include "base/expected.h"
#include "core/model_spec.h"

namespace tactus {

// `why`: "the identity engine has nothing else to answer with".
inline Status RefuseOptional(const ModelSpec& spec, const char* why) {
  for (const TensorSpec& input : spec.inputs) {
    if (!input.optional) continue;
    return InvalidArgument("model '" + spec.name + "': input '" + input.name +
                           "' is optional, but " + why +
                           "; remove `optional: true` from its config.pbtxt");
  }
  return {};
}

}  // namespace tactus
