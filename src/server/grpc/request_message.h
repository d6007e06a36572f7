// From a ModelInferRequest to a call that the runtime takes.
#pragma once

#include <chrono>
#include <memory>

#include "base/expected.h"
#include "service/inference_service.h"

namespace inference {
class ModelInferRequest;
}

namespace tactus {

// Finds the model, checks the message against it and points the call's inputs into it; `keepalive`
// owns the message. Deadline and priority are what the message and the model say; all but `reply`
// is set. `takes_granted`: the caller is a front end of a site; `takes_entered`: it is another
// node, which may have steps of its pipeline run here as one (parameter tactus_enter).
Expected<InferCall> CallFrom(const InferenceService& service,
                             std::shared_ptr<inference::ModelInferRequest> message,
                             std::chrono::steady_clock::time_point received, bool takes_granted,
                             bool takes_entered);

}  // namespace tactus
