// A step's call as a message to another node, and that node's answer as the step's reply. What
// comes is checked: a peer may be of another version.
#pragma once

#include <memory>

#include "base/expected.h"
#include "base/serving_time.h"
#include "service/infer_call.h"

namespace inference {
class ModelConfigResponse;
class ModelInferRequest;
class ModelInferResponse;
class ModelMetadataResponse;
}  // namespace inference

namespace tactus {

// `left`: of the step's time.
void Put(const InferCall& call, Duration left, inference::ModelInferRequest& out);

// The outputs that `call` asks for, in its order. Internal where they are not in the answer, or are
// not of the size that their shapes say. The reply holds `response` and the call's model.
Expected<InferReply> ReplyOf(const InferCall& call,
                             std::shared_ptr<const inference::ModelInferResponse> response);

// What a model of another node is to those who send it steps. Internal where a type is unknown.
Expected<ModelSpec> SpecOf(const inference::ModelMetadataResponse& metadata,
                           const inference::ModelConfigResponse& config);

}  // namespace tactus
