// From a ModelInferRequest to a call that the runtime takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/expected.h"
#include "grpc_service.pb.h"
#include "service/inference_service.h"

namespace tactus {

// A ModelInferRequest whose tensors are still where they came in.
struct InferMessage {
  inference::ModelInferRequest head;            // but raw_input_contents
  std::vector<std::span<const std::byte>> raw;  // raw_input_contents
  std::shared_ptr<const std::byte[]> bytes;     // what they lie in
};

// Finds the model, checks the message against it and points the call's inputs into it; `keepalive`
// owns the message. Deadline and priority are what the message and the model say; all but `reply`
// is set. `takes_granted`: the caller is a front end of a site; `takes_entered`: it is another
// node, which may have steps of its pipeline run here as one (parameter tactus_enter).
Expected<InferCall> CallFrom(const InferenceService& service,
                             std::shared_ptr<const InferMessage> message,
                             std::chrono::steady_clock::time_point received, bool takes_granted,
                             bool takes_entered);

}  // namespace tactus
