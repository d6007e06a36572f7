// One ModelStreamInfer stream: calls come in on it and are answered as they finish.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "server/grpc/call.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/infer_method.h"
#include "service/inference_service.h"

namespace tactus {

// An error of one call is a message with its text; the stream goes on. Bytes that are no message
// end it.
class StreamMethod final : public CallMethod, public std::enable_shared_from_this<StreamMethod> {
 public:
  StreamMethod(InferenceService& service, const CallGate& gate, bool strict_triton,
               std::shared_ptr<ServerCall> call);
  ~StreamMethod() override;

  Admission Admit(std::size_t size, std::span<const std::byte>) override;
  void OnMessage(Message message) override;
  bool Takes() const override { return calls_.size() + unsent_ < kMaxCalls; }
  void OnNoMore(bool cut) override;
  void OnSent() override;
  void OnGone() override;

  // A stream with so many calls under way is not read until one of them is answered: the client
  // then feels it through HTTP/2's flow control.
  static constexpr std::size_t kMaxCalls = 256;

 private:
  using Serial = std::uint64_t;  // of a call in this stream

  void Deny(const Message& message);
  void Start(Serial serial, ReadCall read, CallGate::Place place, std::size_t size);
  void OnReply(Serial serial, std::size_t size, const ReadCall& read, bool of_stream,
               InferReply&& reply);
  // Says what a call has come to.
  void Tell(OutMessage message);
  void Refuse(const Error& error, const std::string& id);
  void Answer(Serial serial, const std::string& id, InferReply&& reply);
  // After each change: counts this stream while anything is under way or goes out, and ends it
  // where there is nothing more to come.
  void Settle();

  InferenceService& service_;
  const CallGate& gate_;
  const std::shared_ptr<CallsNow> now_;
  const bool strict_triton_;
  const std::shared_ptr<ServerCall> call_;

  CallGate::Place place_;                          // of the message that comes, or else
  Error denied_;                                   // why it has none
  std::map<Serial, std::optional<CallId>> calls_;  // under way; nothing until Infer has returned
  Serial next_serial_ = 0;
  std::size_t unsent_ = 0;  // messages that are not out
  bool no_more_ = false;    // the client has closed its side, or the stream is broken
  bool gone_ = false;
  std::size_t counted_ = 0;  // in CallsNow: 1 or 0
  CallEnd end_;
};

}  // namespace tactus
