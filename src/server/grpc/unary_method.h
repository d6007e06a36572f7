// Methods with one protobuf message in and one out, but for inference.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <google/protobuf/message_lite.h>

#include "base/expected.h"
#include "server/grpc/call.h"
#include "server/grpc/call_gate.h"

namespace tactus {

// What such a method's messages may have where they are no files.
inline constexpr std::size_t kSmallMessage = std::size_t{64} << 10;
// And where anybody may call it: the bytes of these are not counted.
inline constexpr std::size_t kTinyMessage = std::size_t{1} << 10;

// One message that came, and what its bytes count as.
struct UnaryRequest {
  std::shared_ptr<ServerCall> call;
  Message message;
  CallGate::Place place;  // may be null
};

// Takes one message and hands it to `answer`: on the I/O thread, or where heavy requests are read.
RpcMethod UnaryBytes(const CallGate& gate, std::size_t most_bytes,
                     std::function<void(UnaryRequest)> answer);

// InvalidArgument where the bytes are no such message.
Status ParseMessage(const Message& message, google::protobuf::MessageLite& into);
// Answers with the message, or with why there is none.
void Answer(ServerCall& call, const Status& status, const google::protobuf::MessageLite& message,
            bool strict_triton);

template <class Request, class Response>
RpcMethod Unary(const CallGate& gate, std::size_t most_bytes, bool strict_triton,
                std::function<Status(const Request&, Response&)> answer) {
  return UnaryBytes(gate, most_bytes,
                    [strict_triton, answer = std::move(answer)](const UnaryRequest& request) {
                      Request in;
                      Response out;
                      Status status = ParseMessage(request.message, in);
                      if (status) status = answer(in, out);
                      Answer(*request.call, status, out, strict_triton);
                    });
}

}  // namespace tactus
