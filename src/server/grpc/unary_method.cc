#include "server/grpc/unary_method.h"

#include <limits>

#include "server/grpc/wire.h"

namespace tactus {
namespace {

// What is longer takes too long on an I/O thread.
constexpr std::size_t kHeavyMessage = std::size_t{32} << 10;

class UnaryMethod final : public CallMethod {
 public:
  UnaryMethod(const CallGate& gate, std::size_t most, std::function<void(UnaryRequest)> answer,
              std::shared_ptr<ServerCall> call)
      : gate_(gate), most_(most), answer_(std::move(answer)), call_(std::move(call)) {}

  Admission Admit(std::size_t size, std::span<const std::byte>) override {
    if (came_) return Admission::kSkip;
    came_ = true;
    if (most_ <= kTinyMessage) return Admission::kRead;
    auto place = gate_.Hold(call_->head(), size);
    if (!place) {
      call_->End(EndOf(std::unexpected(std::move(place.error())), false));
      return Admission::kEnd;
    }
    place_ = *std::move(place);
    return Admission::kRead;
  }

  void OnMessage(Message message) override {
    if (message.data == nullptr && message.size > 0) return;
    UnaryRequest request{.call = call_, .message = std::move(message), .place = place_};
    if (!request.message.packed && request.message.size <= kHeavyMessage) {
      return answer_(std::move(request));
    }
    call_->Decode([request = std::move(request), most = most_, answer = answer_]() mutable {
      Message& packed = request.message;
      if (packed.packed) {
        Status fine = Unpack(request.call->head().coding, packed, most);
        if (fine && request.place != nullptr) fine = request.place->Take(packed.size);
        if (!fine) return request.call->End(EndOf(fine, false));
      }
      answer(std::move(request));
    });
  }

  void OnNoMore(bool cut) override {
    if (came_ && !cut) return;
    call_->End(EndOf(std::unexpected(NoWholeMessage()), false));
  }

 private:
  const CallGate& gate_;
  const std::size_t most_;
  const std::function<void(UnaryRequest)> answer_;
  const std::shared_ptr<ServerCall> call_;
  CallGate::Place place_;
  bool came_ = false;
};

}  // namespace

RpcMethod UnaryBytes(const CallGate& gate, std::size_t most_bytes,
                     std::function<void(UnaryRequest)> answer) {
  return {.most_bytes = most_bytes,
          .begin = [&gate, most_bytes, answer = std::move(answer)](
                       std::shared_ptr<ServerCall> call) -> std::shared_ptr<CallMethod> {
            return std::make_shared<UnaryMethod>(gate, most_bytes, answer, std::move(call));
          }};
}

Status ParseMessage(const Message& message, google::protobuf::MessageLite& into) {
  const bool fits = message.size <= std::numeric_limits<int>::max();
  if (fits && into.ParseFromArray(message.data.get(), static_cast<int>(message.size))) return {};
  return InvalidArgument("the request is not a " + into.GetTypeName() + " message");
}

void Answer(ServerCall& call, const Status& status, const google::protobuf::MessageLite& message,
            bool strict_triton) {
  if (status) {
    OutMessage out;
    out.Add(message.SerializeAsString());
    call.Send(std::move(out));
  }
  call.End(EndOf(status, strict_triton));
}

}  // namespace tactus
