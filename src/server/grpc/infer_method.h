// One unary ModelInfer call, from its header to its answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/grpc/call.h"
#include "server/grpc/call_gate.h"
#include "service/inference_service.h"

namespace tactus {

// A call as its message says it, or why it is none.
struct ReadCall {
  Status status;
  bool no_message = false;  // the bytes are none at all
  std::string id;
  std::shared_ptr<InferCall> call;
};
// On any thread: unpacks, parses and checks a message of a call that came at `received`. The call
// has neither `reply` nor the client's own deadline.
ReadCall ReadInferCall(const InferenceService& service, const CallGate& gate, const CallHead& head,
                       CallPlace& place, Message message,
                       std::chrono::steady_clock::time_point received);
// Whether that takes so long that it belongs where heavy requests are read.
bool IsHeavy(const Message& message);

// Tightens the call's limit by the client's deadline; whether nothing else limits it more.
bool TightenByGrpc(const CallHead& head, InferCall& call);

// The reply with the classes that the call asks for, or why there are none.
InferReply Classified(const std::vector<std::uint32_t>& classes, InferReply&& reply);

bool IsExpired(const InferReply& reply);

class InferMethod final : public CallMethod, public std::enable_shared_from_this<InferMethod> {
 public:
  InferMethod(InferenceService& service, const CallGate& gate, bool strict_triton,
              std::shared_ptr<ServerCall> call);
  ~InferMethod() override;

  void OnBegin() override;
  Admission Admit(std::size_t size, std::span<const std::byte> first) override;
  void OnMessage(Message message) override;
  void OnNoMore(bool cut) override;
  void OnGone() override;

 private:
  void Start(ReadCall read);
  void Answer(InferReply&& reply);
  // What the service has not had, and counts.
  void TurnAway(const Error& error);
  void Refuse(const Error& error);
  std::optional<Duration> Patience() const;

  InferenceService& service_;
  const CallGate& gate_;
  const std::shared_ptr<CallsNow> now_;
  const bool strict_triton_;
  const std::shared_ptr<ServerCall> call_;
  std::size_t size_ = 0;  // of the request, as it came
  CallGate::Place place_;
  std::shared_ptr<BodyAdmission::Place> body_;  // of its message; null: it needs none
  std::string id_;
  std::string timing_;          // once it is answered
  bool came_ = false;           // the message
  bool gone_ = false;           // the client
  bool grpc_deadline_ = false;  // nothing limits the call more than grpc-timeout
  TimeLimit time_;              // the model's and, once the message is read, its client's
  std::optional<CallId> running_;
};

}  // namespace tactus
