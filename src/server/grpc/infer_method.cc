#include "server/grpc/infer_method.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "grpc_service.pb.h"
#include "server/grpc/on_arena.h"
#include "server/grpc/request_message.h"
#include "server/grpc/response_message.h"
#include "server/grpc/wire.h"
#include "server/kserve/classification.h"
#include "server/kserve/error_mapping.h"
#include "server/kserve/server_timing.h"
#include "server/kserve/time_headers.h"

namespace tactus {
namespace {

// A text of this size is read in a millisecond or so, and a client that sends many is one of many.
constexpr std::size_t kHeavyText = std::size_t{32} << 10;

Status ReadTimes(const CallHead& head, TimeLimit& limit) {
  for (const auto& [name, value] : head.times) {
    if (Status read = ReadTimeHeader(name, value, limit); !read) return read;
  }
  return {};
}

Status Read(const InferenceService& service, const CallGate& gate, const CallHead& head,
            CallPlace& place, Message message, std::chrono::steady_clock::time_point received,
            ReadCall& read) {
  if (message.packed) {
    if (Status unpacked = Unpack(head.coding, message, gate.max_message); !unpacked) {
      return unpacked;
    }
    if (Status taken = place.Take(message.size); !taken) return taken;
  }
  auto parsed = ParseInferRequest(message);
  read.no_message = !parsed;
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  read.id = (*parsed)->head.id();
  auto call =
      CallFrom(service, *std::move(parsed), received, gate.takes_granted, gate.takes_entered);
  if (!call) return std::unexpected(std::move(call.error()));
  if (Status times = ReadTimes(head, call->limit); !times) return times;
  call->trace_parent = head.trace_parent;
  if (call->priority == 0 && gate.objectives != nullptr && !head.objective.empty()) {
    call->priority = gate.objectives->PriorityOf(head.objective);
  }
  read.call = std::make_shared<InferCall>(*std::move(call));
  return {};
}

}  // namespace

ReadCall ReadInferCall(const InferenceService& service, const CallGate& gate, const CallHead& head,
                       CallPlace& place, Message message,
                       std::chrono::steady_clock::time_point received) {
  ReadCall read;
  try {
    read.status = Read(service, gate, head, place, std::move(message), received, read);
  } catch (const std::bad_alloc&) {
    read.status = Fail(ErrorCode::kResourceExhausted, "no memory for this call: try again later");
  }
  return read;
}

bool IsHeavy(const Message& message) {
  return message.packed || (message.size > kHeavyText && BytesBesideRaw(message) > kHeavyText);
}

bool TightenByGrpc(const CallHead& head, InferCall& call) {
  TimeLimit others = call.limit;
  if (call.model->slo > Duration{}) others.Tighten(call.model->slo);
  if (!head.deadline) return false;
  // Of a stream the header may have come long before this message.
  const auto left = std::chrono::duration_cast<Duration>(*head.deadline - call.received);
  call.limit.Tighten(left);
  return !others.shortest() || left < *others.shortest();
}

InferReply Classified(const std::vector<std::uint32_t>& classes, InferReply&& reply) {
  if (Status classified = Classify(classes, reply); !classified) reply.status = classified;
  return std::move(reply);
}

bool IsExpired(const InferReply& reply) {
  return !reply.status && reply.status.error().code == ErrorCode::kDeadlineExceeded;
}

InferMethod::InferMethod(InferenceService& service, const CallGate& gate, bool strict_triton,
                         std::shared_ptr<ServerCall> call)
    : service_(service),
      gate_(gate),
      now_(gate.now),
      strict_triton_(strict_triton),
      call_(std::move(call)) {
  now_->calls.fetch_add(1);
}

InferMethod::~InferMethod() {
  place_ = nullptr;
  now_->calls.fetch_sub(1);
}

void InferMethod::OnBegin() {
  if (const Status open = gate_.Open(); !open) TurnAway(open.error());
}

CallMethod::Admission InferMethod::Admit(std::size_t size, std::span<const std::byte> first) {
  if (came_) return Admission::kSkip;  // one message is all that there may be
  came_ = true;
  if (gate_.bodies != nullptr) {
    auto body =
        gate_.bodies->Enter(service_, ModelNameIn(first), -1, size, call_->head().TimeLeft());
    if (!body) {
      const auto model = service_.Find(ModelNameIn(first), -1);
      if (model && (*model)->slo > Duration{}) time_.Tighten((*model)->slo);
      Refuse(body.error());
      return Admission::kEnd;
    }
    body_ = *std::move(body);
  }
  size_ = size;
  auto place = gate_.Enter(call_->head(), size);
  if (!place) {
    Refuse(place.error());
    return Admission::kEnd;
  }
  place_ = *std::move(place);
  return Admission::kRead;
}

void InferMethod::OnMessage(Message message) {
  if (message.data == nullptr && message.size > 0) return;
  // The client waits from its header on, however long its message takes.
  const auto received = call_->head().arrived;
  if (!IsHeavy(message)) {
    return Start(
        ReadInferCall(service_, gate_, call_->head(), *place_, std::move(message), received));
  }
  call_->Decode([self = shared_from_this(), message = std::move(message), received] {
    InferMethod& s = *self;
    auto read = ReadInferCall(s.service_, s.gate_, s.call_->head(), *s.place_, message, received);
    s.call_->Post([self, read = std::move(read)]() mutable { self->Start(std::move(read)); });
  });
}

void InferMethod::OnNoMore(bool cut) {
  if (came_ && !cut) return;
  TurnAway(NoWholeMessage());
}

void InferMethod::OnGone() {
  gone_ = true;
  if (running_) service_.Cancel(*running_);
}

void InferMethod::Start(ReadCall read) {
  if (gone_) return;
  if (!read.status) return TurnAway(read.status.error());
  id_ = std::move(read.id);
  InferCall& call = *read.call;
  call.way = call_->Way();
  grpc_deadline_ = TightenByGrpc(call_->head(), call);
  time_ = call.limit;
  if (call.model->slo > Duration{}) time_.Tighten(call.model->slo);
  // The answer comes by way of the loop, hence after Infer has returned.
  call.reply = [self = shared_from_this(), classes = std::move(call.classes)](InferReply&& reply) {
    InferReply answer = Classified(classes, std::move(reply));
    CallPlace::KeepFor(answer, self->place_);
    self->call_->Post(
        [self, answer = std::move(answer)]() mutable { self->Answer(std::move(answer)); });
  };
  running_ = service_.Infer(std::move(call));
}

void InferMethod::TurnAway(const Error& error) {
  gate_.Count(ReasonOf(error.code));
  Refuse(error);
}

void InferMethod::Refuse(const Error& error) {
  CallEnd end = EndOf(std::unexpected(error), strict_triton_);
  if (!timing_.empty()) end.trailers.emplace_back("server-timing", timing_);
  if (!IsRefusal(std::unexpected(error))) return call_->End(std::move(end));
  gate_.Refuse(call_->head(), size_, Patience(),
               [self = shared_from_this(), end] { self->call_->End(end); });
}

// For how much longer the client waits, or its answer is of use.
std::optional<Duration> InferMethod::Patience() const {
  const auto passed = std::chrono::steady_clock::now() - call_->head().arrived;
  std::optional<Duration> patience = call_->head().TimeLeft();
  if (const auto time = time_.shortest()) {
    patience = std::min(patience.value_or(*time), *time - Duration(passed));
  }
  return patience;
}

void InferMethod::Answer(InferReply&& reply) {
  running_.reset();
  if (body_) body_->Answered(reply, call_->Way());
  if (gone_) return;
  if (gate_.bodies) gate_.bodies->OnLeaving(reply, call_->head().arrived, time_.shortest());
  timing_ = ServerTiming(reply);
  CallEnd end;
  if (!reply.status) {
    if (!strict_triton_ || !grpc_deadline_ || !IsExpired(reply)) {
      return Refuse(reply.status.error());
    }
    end = DeadlinePassed();
  } else {
    OnArena<inference::ModelInferResponse> head;
    FillHead(reply, id_, *head);
    call_->Send(EncodeResponse(*head, reply.outputs, reply.storage));
  }
  end.trailers.emplace_back("server-timing", std::move(timing_));
  call_->End(std::move(end));
}

}  // namespace tactus
