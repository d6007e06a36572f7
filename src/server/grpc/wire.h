// Messages of the inference call as bytes on the wire. Requests are parsed here rather than by the
// generated code, and responses put together from slices: the tensors of an answer go out from
// where the engine left them, without a copy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "service/inference_service.h"

namespace grpc {
class ByteBuffer;
class Slice;
}  // namespace grpc
namespace inference {
class ModelInferRequest;
class ModelInferResponse;
}  // namespace inference

namespace tactus {

// gRPC itself would unpack a message whole before it looks at its size, so it is left to this: a
// packed message is replaced by what it holds, up to `limit` bytes. ResourceExhausted beyond them,
// InvalidArgument where it is damaged.
Status Unpack(grpc::ByteBuffer& bytes, std::size_t limit);

// Takes the message out of `bytes`, which is empty afterwards: a queued call then holds its tensors
// once. Bytes that are not a ModelInferRequest are InvalidArgument.
Expected<std::shared_ptr<inference::ModelInferRequest>> ParseInferRequest(grpc::ByteBuffer& bytes);

// A response without its tensors' bytes, and those bytes: `outputs` by position.
struct WireResponse {
  WireResponse();
  ~WireResponse();
  WireResponse(WireResponse&&) noexcept;
  WireResponse& operator=(WireResponse&&) noexcept;

  std::vector<grpc::Slice> slices;
  std::size_t size = 0;
};

// `head` has every field but raw_output_contents. The slices keep `storage` alive.
WireResponse EncodeResponse(const inference::ModelInferResponse& head,
                            const std::vector<OutputTensor>& outputs,
                            const std::shared_ptr<const void>& storage);

// A ModelInferResponse, and the same inside a ModelStreamInferResponse.
grpc::ByteBuffer ToMessage(const WireResponse& response);
grpc::ByteBuffer ToStreamMessage(const WireResponse& response);
// A ModelStreamInferResponse that says what went wrong; `id` names the call.
grpc::ByteBuffer ToStreamError(const std::string& message, const std::string& id);

}  // namespace tactus
