#include "server/grpc/stream_method.h"

#include <chrono>
#include <utility>

#include "grpc_service.pb.h"
#include "server/grpc/on_arena.h"
#include "server/grpc/request_message.h"
#include "server/grpc/response_message.h"
#include "server/grpc/wire.h"
#include "server/kserve/error_mapping.h"

namespace tactus {
namespace {

// A message of this size is read though it has no place, so that its refusal names the call.
constexpr std::size_t kSmall = std::size_t{64} << 10;

}  // namespace

StreamMethod::StreamMethod(InferenceService& service, const CallGate& gate, bool strict_triton,
                           std::shared_ptr<ServerCall> call)
    : service_(service),
      gate_(gate),
      now_(gate.now),
      strict_triton_(strict_triton),
      call_(std::move(call)) {}

StreamMethod::~StreamMethod() { now_->calls.fetch_sub(counted_); }

CallMethod::Admission StreamMethod::Admit(std::size_t size, std::span<const std::byte>) {
  auto place = gate_.Enter(call_->head(), size);
  if (place) {
    place_ = *std::move(place);
    return Admission::kRead;
  }
  place_ = nullptr;
  denied_ = std::move(place.error());
  return size <= kSmall ? Admission::kRead : Admission::kSkip;
}

void StreamMethod::OnMessage(Message message) {
  const auto received = message.begun;
  if (place_ == nullptr) return Deny(message);
  const Serial serial = next_serial_++;
  calls_.emplace(serial, std::nullopt);
  CallGate::Place place = std::exchange(place_, nullptr);
  const std::size_t size = message.size;
  if (!IsHeavy(message)) {
    auto read = ReadInferCall(service_, gate_, call_->head(), *place, std::move(message), received);
    return Start(serial, std::move(read), std::move(place), size);
  }
  call_->Decode([self = shared_from_this(), serial, place, message = std::move(message), received] {
    StreamMethod& s = *self;
    auto read = ReadInferCall(s.service_, s.gate_, s.call_->head(), *place, message, received);
    s.call_->Post([self, serial, read = std::move(read), place, size = message.size]() mutable {
      self->Start(serial, std::move(read), std::move(place), size);
    });
  });
}

// Refuses a message that has no place.
void StreamMethod::Deny(const Message& message) {
  std::string id;
  if (message.data != nullptr && !message.packed) {
    if (const auto parsed = ParseInferRequest(message)) id = (*parsed)->head.id();
  }
  Refuse(denied_, id);
}

void StreamMethod::Start(Serial serial, ReadCall read, CallGate::Place place, std::size_t size) {
  if (gone_) {
    calls_.erase(serial);
    return Settle();
  }
  if (!read.status) gate_.Count(ReasonOf(read.status.error().code));
  if (read.no_message) {
    calls_.erase(serial);
    no_more_ = true;
    end_ = EndOf(read.status, strict_triton_);
    return Settle();
  }
  Status fine = gate_.Open();
  if (!fine && read.status) gate_.Count(ReasonOf(fine.error().code));
  if (fine) fine = read.status;
  if (!fine) {
    calls_.erase(serial);
    return Refuse(fine.error(), read.id);
  }
  InferCall call = std::move(*std::exchange(read.call, nullptr));
  call.way = call_->Way();
  const bool of_stream = TightenByGrpc(call_->head(), call);
  // The call's place is given back with what answers it.
  call.reply = [self = shared_from_this(), serial, size, of_stream, read = std::move(read),
                classes = std::move(call.classes),
                place = std::move(place)](InferReply&& reply) mutable {
    InferReply answer = Classified(classes, std::move(reply));
    CallPlace::KeepFor(answer, place);
    self->call_->Post(
        [self, serial, size, of_stream, read, place, answer = std::move(answer)]() mutable {
          self->OnReply(serial, size, read, of_stream, std::move(answer));
        });
  };
  const CallId running = service_.Infer(std::move(call));
  calls_[serial] = running;  // its answer comes by way of the loop, hence later
  Settle();
}

void StreamMethod::OnReply(Serial serial, std::size_t size, const ReadCall& read, bool of_stream,
                           InferReply&& reply) {
  if (gone_ || (strict_triton_ && of_stream && IsExpired(reply))) {
    calls_.erase(serial);
    if (!gone_) end_ = DeadlinePassed();  // no answer: the stream's end says it
    return Settle();
  }
  if (!IsRefusal(reply.status)) {
    return Answer(serial, read.id, std::move(reply));
  }
  calls_[serial].reset();
  gate_.Refuse(call_->head(), size, call_->head().TimeLeft(),
               [self = shared_from_this(), serial, id = read.id, reply] {
                 self->call_->Post([self, serial, id, reply]() mutable {
                   self->Answer(serial, id, std::move(reply));
                 });
               });
}

void StreamMethod::Answer(Serial serial, const std::string& id, InferReply&& reply) {
  calls_.erase(serial);
  if (!reply.status) return Refuse(reply.status.error(), id);
  OnArena<inference::ModelInferResponse> head;
  FillHead(reply, id, *head);
  // As Triton does, whether or not the call asks for it: a call has one answer.
  (*head->mutable_parameters())["triton_final_response"].set_bool_param(true);
  Tell(ToStreamMessage(EncodeResponse(*head, reply.outputs, reply.storage)));
}

void StreamMethod::Refuse(const Error& error, const std::string& id) {
  Tell(ToStreamError(ToWire(error, strict_triton_).text, id));
}

void StreamMethod::Tell(OutMessage message) {
  if (!gone_) {
    ++unsent_;
    call_->Send(std::move(message));
  }
  Settle();
}

void StreamMethod::OnNoMore(bool cut) {
  no_more_ = true;
  if (cut) end_ = EndOf(std::unexpected(NoWholeMessage()), false);
  Settle();
}

void StreamMethod::OnSent() {
  unsent_ = 0;
  Settle();
}

void StreamMethod::OnGone() {
  gone_ = true;
  unsent_ = 0;
  for (const auto& [serial, id] : calls_) {
    if (id) service_.Cancel(*id);
  }
  Settle();
}

void StreamMethod::Settle() {
  const std::size_t counts = calls_.empty() && unsent_ == 0 ? 0 : 1;
  now_->calls.fetch_add(counts - std::exchange(counted_, counts));  // modulo 2^64
  if (gone_) return;
  if (no_more_ && calls_.empty()) return call_->End(end_);
  if (Takes()) call_->ReadOn();
}

}  // namespace tactus
