// One unary ModelInfer call, from its bytes to its answer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "base/serving_time.h"
#include "server/grpc/call_gate.h"
#include "service/inference_service.h"

namespace tactus {

// What is left of the client's deadline (grpc-timeout), below 0 once it has passed; nothing when it
// set none.
std::optional<Duration> TimeLeft(const grpc::CallbackServerContext& context);

// Tightens the call's limit by TimeLeft; whether nothing else limits it more.
bool TightenByGrpc(const grpc::CallbackServerContext& context, InferCall& call);

// The reply with the classes that the call asks for, or why there are none.
InferReply Classified(const std::vector<std::uint32_t>& classes, InferReply&& reply);

bool IsExpired(const InferReply& reply);

// Triton leaves the client's own deadline to gRPC, whose clients look for this code and text.
grpc::Status DeadlinePassed();

// Tightens `limit` by kTimeHeaders in the call's metadata. Those of a stream hold for each of its
// calls.
Status ReadTimeMetadata(const grpc::CallbackServerContext& context, TimeLimit& limit);

// The priority that kObjectiveHeader in the call's metadata stands for; 0: none.
std::uint32_t ObjectiveOf(const grpc::CallbackServerContext& context, const CallGate& gate);

// `error` in the shared table's words; what is worth repeating says so in its trailing metadata.
grpc::Status ToGrpcStatus(const Error& error, bool strict_triton,
                          grpc::CallbackServerContext* context = nullptr);

// Owns itself: gRPC's last word is OnDone.
class InferReactor final : public grpc::ServerUnaryReactor {
 public:
  // Starts at once. `response` is gRPC's and is filled before Finish.
  InferReactor(InferenceService& service, const CallGate& gate, bool strict_triton,
               grpc::CallbackServerContext& context, grpc::ByteBuffer& request,
               grpc::ByteBuffer& response);

  // The client cancelled, its deadline passed, or its connection broke. gRPC calls it only after
  // the handler that made this object has returned, hence after Infer.
  void OnCancel() override { service_.Cancel(call_id_.load()); }
  void OnDone() override {
    const auto now = gate_.now;
    delete this;
    now->calls.fetch_sub(1);
  }
  // Both are quick and take no lock, so gRPC need not hand each call to its executor for them.
  bool InternalInlineable() override { return true; }

 private:
  Status Begin(grpc::ByteBuffer& request);
  // On whichever thread answers, maybe inside an Infer. `this` may be gone after Finish.
  void Answer(InferReply&& reply);
  void Refuse(const Error& error);

  InferenceService& service_;
  const CallGate& gate_;
  const bool strict_triton_;
  grpc::CallbackServerContext& context_;
  const std::size_t size_;  // of the request, as it came
  grpc::ByteBuffer& response_;
  CallGate::Place place_;
  std::string id_;
  bool grpc_deadline_ = false;  // nothing limits the call more than grpc-timeout
  std::atomic<CallId> call_id_{0};
};

}  // namespace tactus
