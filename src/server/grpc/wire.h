// Messages of the inference call as bytes on the wire. Requests are parsed here rather than by the
// generated code, and responses put together from slices: the tensors of an answer go out from
// where the engine left them, without a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "server/grpc/call.h"
#include "service/inference_service.h"

namespace inference {
class ModelInferResponse;
}  // namespace inference

namespace tactus {

struct InferMessage;  // request_message.h

// Replaces a packed message by what it holds, up to `limit` bytes. ResourceExhausted beyond them,
// InvalidArgument where it is damaged.
Status Unpack(Coding coding, Message& message, std::size_t limit);

// The tensors stay in the message's bytes, which the result keeps. Bytes that are not a
// ModelInferRequest are InvalidArgument.
Expected<std::shared_ptr<InferMessage>> ParseInferRequest(const Message& message);

// Bytes of the message beside raw tensors, which take time to parse; all of them where there are
// many fields to look through.
std::size_t BytesBesideRaw(const Message& message);

// The model that a ModelInferRequest asks for, as far as its first bytes say it: libraries write it
// first. Empty: they do not.
std::string_view ModelNameIn(std::span<const std::byte> first);

// A ModelInferResponse: `head` has every field but raw_output_contents, `outputs` are by position.
// The result keeps `storage` alive.
OutMessage EncodeResponse(const inference::ModelInferResponse& head,
                          const std::vector<OutputTensor>& outputs,
                          const std::shared_ptr<const void>& storage);

// The same inside a ModelStreamInferResponse.
OutMessage ToStreamMessage(OutMessage response);
// A ModelStreamInferResponse that says what went wrong; `id` names the call.
OutMessage ToStreamError(const std::string& message, const std::string& id);

}  // namespace tactus
