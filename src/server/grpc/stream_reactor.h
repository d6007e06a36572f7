// One ModelStreamInfer stream: calls come in on it and are answered as they finish.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/grpc/call_gate.h"
#include "service/inference_service.h"

namespace tactus {

// Owns itself: gRPC's last word is OnDone. An error of one call is a message with its text; the
// stream goes on. Bytes that are no message end it.
class StreamReactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StreamReactor(InferenceService& service, const CallGate& gate, bool strict_triton,
                grpc::CallbackServerContext& context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override {
    const auto now = gate_.now;
    const std::size_t counted = counted_;
    delete this;
    now->calls.fetch_sub(counted);
  }

  // A stream with so many calls under way is not read until one of them is answered: the client
  // then feels it through HTTP/2's flow control.
  static constexpr std::size_t kMaxCalls = 256;

 private:
  using Serial = std::uint64_t;  // of a call in this stream
  static constexpr CallId kNotYet = ~CallId{0};

  void Begin(grpc::ByteBuffer message);
  void Refuse(const Error& error, const std::string& id);
  void Answer(Serial serial, const std::string& id, bool final_flag, InferReply&& reply);
  // A call cannot meet the deadline of the stream itself: no answer, as the stream's end says it.
  void Expire(Serial serial);

  // What the state asks for. Taking a step marks it as under way, which keeps this object alive
  // until the step has been made; so Take is called under the lock and Make after it.
  struct Step {
    grpc::ByteBuffer* write = nullptr;
    bool read = false;
    bool finish = false;
    grpc::Status status;
  };
  Step Take();
  void Make(const Step& step);

  InferenceService& service_;
  const CallGate& gate_;
  const bool strict_triton_;
  grpc::CallbackServerContext& context_;

  std::mutex mutex_;                // guards what follows
  std::map<Serial, CallId> calls_;  // under way; kNotYet until Infer has returned
  Serial next_serial_ = 0;
  std::deque<grpc::ByteBuffer> outgoing_;  // the first is being written where `writing_`
  grpc::ByteBuffer incoming_;
  bool reading_ = false;
  bool writing_ = false;
  bool no_more_ = false;  // the client has closed its side, or the stream is broken
  bool cancelled_ = false;
  bool finished_ = false;
  std::size_t counted_ = 0;  // in CallsNow: 1 while anything is under way or goes out
  grpc::Status status_;
};

}  // namespace tactus
