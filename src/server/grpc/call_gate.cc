#include "server/grpc/call_gate.h"

#include <string>
#include <string_view>
#include <utility>

#include "server/access/client_address.h"
#include "server/grpc/infer_reactor.h"

namespace tactus {
namespace {

std::string ClientOf(const grpc::CallbackServerContext& context, const Access* access) {
  if (access != nullptr && access->has_tokens()) {
    const auto found = context.client_metadata().find("authorization");
    if (found != context.client_metadata().end()) {
      const std::string_view value(found->second.data(), found->second.size());
      return access->Admit(Scope::kInfer, value).client;
    }
  }
  return ClientAtGrpcPeer(context.peer());
}

struct Held {
  Held(ClientLimits::Call given, std::size_t taken) : call(std::move(given)), bytes(taken) {}
  ~Held() { call.bytes->Give(bytes); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  ClientLimits::Call call;
  const std::size_t bytes;
};

}  // namespace

Status CallGate::Open() const {
  if (!now->stopping.load()) return {};
  return Fail(ErrorCode::kUnavailable, "the server is stopping: try another one");
}

Expected<CallGate::Place> CallGate::Enter(const grpc::CallbackServerContext& context,
                                          std::size_t bytes) const {
  if (limits_ == nullptr) return nullptr;
  auto call = limits_->Begin(ClientOf(context, access_.get()), ClientLimits::Clock::now());
  if (!call) return Fail(ErrorCode::kResourceExhausted, std::move(call.error().text));
  const ByteBudget::Taken taken = call->bytes->Take(bytes);
  if (taken != ByteBudget::Taken::kYes) {
    return Fail(ErrorCode::kResourceExhausted, ClientLimits::BytesText(taken));
  }
  return std::make_shared<const Held>(*std::move(call), bytes);
}

void CallGate::Refuse(const grpc::CallbackServerContext& context, std::size_t bytes,
                      std::function<void()> tell) const {
  if (refusals_ == nullptr) return tell();
  refusals_->Tell(ClientOf(context, access_.get()), bytes, TimeLeft(context), std::move(tell));
}

}  // namespace tactus
