// What calls are told of runs that take far longer than they should, and of models that no lane
// has.
#pragma once

#include <memory>

#include "base/expected.h"
#include "core/model_spec.h"

namespace tactus {

// kUnavailable: nothing else serves their model.
std::shared_ptr<const Error> StuckErrorOf(const ModelSpec& model);
// kUnavailable: each lane lost their model with its engine's process.
std::shared_ptr<const Error> LeftOutErrorOf(const ModelSpec& model);
// kDeadlineExceeded: their run was stopped.
std::shared_ptr<const Error> StoppedErrorOf(const ModelSpec& model);

}  // namespace tactus
