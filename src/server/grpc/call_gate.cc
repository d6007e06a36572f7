#include "server/grpc/call_gate.h"

#include <string>
#include <utility>

namespace tactus {

ByteBudget::Taken CallPlace::TryTake(std::size_t bytes) {
  const ByteBudget::Taken taken = call_.bytes->Take(bytes);
  if (taken == ByteBudget::Taken::kYes) bytes_ += bytes;
  return taken;
}

Status CallPlace::Take(std::size_t bytes) {
  const ByteBudget::Taken taken = TryTake(bytes);
  if (taken == ByteBudget::Taken::kYes) return {};
  return Fail(ErrorCode::kResourceExhausted, ClientLimits::BytesText(taken));
}

void CallPlace::KeepFor(InferReply& reply, const std::shared_ptr<CallPlace>& place) {
  const std::size_t bytes = OutputBytes(reply);
  if (bytes < kLeastCharged) return;
  place->call_.bytes->Charge(bytes);
  place->bytes_ += bytes;
  reply.storage = std::make_shared<const std::pair<std::shared_ptr<const void>, CallGate::Place>>(
      std::move(reply.storage), place);
}

Status CallGate::Open() const {
  if (!now->stopping.load()) return {};
  return Fail(ErrorCode::kUnavailable, "the server is stopping: try another one");
}

Expected<CallGate::Place> CallGate::Enter(const CallHead& head, std::size_t bytes) const {
  auto call = limits_->Begin(head.client, ClientLimits::Clock::now());
  if (!call) {
    Count(RefusalReason::kClientLimit);
    return Fail(ErrorCode::kResourceExhausted, std::move(call.error().text));
  }
  auto place = std::make_shared<CallPlace>(*std::move(call));
  const ByteBudget::Taken taken = place->TryTake(bytes);
  if (taken == ByteBudget::Taken::kYes) return place;
  Count(taken == ByteBudget::Taken::kBeyondLimit ? RefusalReason::kClientLimit
                                                 : RefusalReason::kResourceExhausted);
  return Fail(ErrorCode::kResourceExhausted, ClientLimits::BytesText(taken));
}

Expected<CallGate::Place> CallGate::Hold(const CallHead& head, std::size_t bytes) const {
  auto place = std::make_shared<CallPlace>(limits_->Hold(head.client));
  if (Status taken = place->Take(bytes); !taken) return std::unexpected(std::move(taken.error()));
  return place;
}

void CallGate::Refuse(const CallHead& head, std::size_t bytes, std::optional<Duration> patience,
                      std::function<void()> tell) const {
  if (refusals_ == nullptr) return tell();
  refusals_->Tell(head.client, bytes, patience, std::move(tell));
}

}  // namespace tactus
