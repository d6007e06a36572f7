#include "server/grpc/infer_reactor.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include <grpc/support/time.h>

#include "grpc_service.pb.h"
#include "server/grpc/on_arena.h"
#include "server/grpc/request_message.h"
#include "server/grpc/response_message.h"
#include "server/grpc/wire.h"
#include "server/kserve/classification.h"
#include "server/kserve/error_mapping.h"
#include "server/kserve/objectives.h"
#include "server/kserve/server_timing.h"
#include "server/kserve/time_headers.h"

namespace tactus {

std::optional<Duration> TimeLeft(const grpc::CallbackServerContext& context) {
  // Not deadline(): in nanoseconds, one in 300 years has passed.
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  constexpr std::int64_t kLongest = TimeLimit::kLongest / Seconds(1);
  if (left.tv_sec > kLongest) return std::nullopt;
  return Seconds(std::max(left.tv_sec, -kLongest)) + Nanos(left.tv_nsec);
}

bool TightenByGrpc(const grpc::CallbackServerContext& context, InferCall& call) {
  TimeLimit others = call.limit;
  if (call.model->slo > Duration{}) others.Tighten(call.model->slo);
  const auto left = TimeLeft(context);
  call.limit.Tighten(left);
  return left && (!others.shortest() || *left < *others.shortest());
}

InferReply Classified(const std::vector<std::uint32_t>& classes, InferReply&& reply) {
  if (Status classified = Classify(classes, reply); !classified) reply.status = classified;
  return std::move(reply);
}

bool IsExpired(const InferReply& reply) {
  return !reply.status && reply.status.error().code == ErrorCode::kDeadlineExceeded;
}

grpc::Status DeadlinePassed() { return {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}; }

Status ReadTimeMetadata(const grpc::CallbackServerContext& context, TimeLimit& limit) {
  const auto& metadata = context.client_metadata();
  for (const std::string_view name : kTimeHeaders) {
    const auto [first, last] = metadata.equal_range(grpc::string_ref(name.data(), name.size()));
    for (auto field = first; field != last; ++field) {
      const std::string_view value(field->second.data(), field->second.size());
      if (Status read = ReadTimeHeader(name, value, limit); !read) return read;
    }
  }
  return {};
}

std::uint32_t ObjectiveOf(const grpc::CallbackServerContext& context, const CallGate& gate) {
  if (gate.objectives == nullptr) return 0;
  const auto& metadata = context.client_metadata();
  const auto found =
      metadata.find(grpc::string_ref(kObjectiveHeader.data(), kObjectiveHeader.size()));
  if (found == metadata.end()) return 0;
  return gate.objectives->PriorityOf({found->second.data(), found->second.size()});
}

grpc::Status ToGrpcStatus(const Error& error, bool strict_triton,
                          grpc::CallbackServerContext* context) {
  WireError wire = ToWire(error, strict_triton);
  if (wire.retry_after && context != nullptr) {
    // Milliseconds; clients with a retry policy wait that long.
    context->AddTrailingMetadata("grpc-retry-pushback-ms", "1000");
  }
  return {static_cast<grpc::StatusCode>(wire.grpc), std::move(wire.text)};
}

InferReactor::InferReactor(InferenceService& service, const CallGate& gate, bool strict_triton,
                           grpc::CallbackServerContext& context, grpc::ByteBuffer& request,
                           grpc::ByteBuffer& response)
    : service_(service),
      gate_(gate),
      strict_triton_(strict_triton),
      context_(context),
      size_(request.Length()),
      response_(response) {
  gate_.now->calls.fetch_add(1);
  Status begun = gate_.Open();
  try {
    if (begun) begun = Begin(request);
  } catch (const std::bad_alloc&) {
    begun = Fail(ErrorCode::kResourceExhausted, "no memory for this call: try again later");
  }
  if (!begun) Refuse(begun.error());
}

void InferReactor::Refuse(const Error& error) {
  const auto tell = [this, error] { Finish(ToGrpcStatus(error, strict_triton_, &context_)); };
  if (!IsRefusal(std::unexpected(error))) return tell();
  gate_.Refuse(context_, size_, tell);
}

Status InferReactor::Begin(grpc::ByteBuffer& request) {
  const auto received = std::chrono::steady_clock::now();
  if (Status unpacked = Unpack(request, gate_.max_message); !unpacked) return unpacked;
  auto place = gate_.Enter(context_, request.Length());
  if (!place) return std::unexpected(std::move(place.error()));
  place_ = *std::move(place);
  auto message = ParseInferRequest(request);
  if (!message) return std::unexpected(std::move(message.error()));
  id_ = (*message)->id();
  auto call =
      CallFrom(service_, std::move(*message), received, gate_.takes_granted, gate_.takes_entered);
  if (!call) return std::unexpected(std::move(call.error()));
  if (Status read = ReadTimeMetadata(context_, call->limit); !read) return read;
  if (call->priority == 0) call->priority = ObjectiveOf(context_, gate_);
  grpc_deadline_ = TightenByGrpc(context_, *call);
  call->reply = [this, classes = std::move(call->classes)](InferReply&& reply) {
    Answer(Classified(classes, std::move(reply)));
  };
  call_id_.store(service_.Infer(std::move(*call)));
  return {};
}

void InferReactor::Answer(InferReply&& reply) {
  context_.AddTrailingMetadata("server-timing", ServerTiming(reply));
  if (!reply.status) {
    if (strict_triton_ && grpc_deadline_ && IsExpired(reply)) return Finish(DeadlinePassed());
    return Refuse(reply.status.error());
  }
  OnArena<inference::ModelInferResponse> head;
  FillHead(reply, id_, *head);
  response_ = ToMessage(EncodeResponse(*head, reply.outputs, reply.storage));
  Finish(grpc::Status::OK);
}

}  // namespace tactus
