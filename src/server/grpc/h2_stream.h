// One call on its connection: header, messages, the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/grpc/call.h"
#include "server/grpc/h2_session.h"
#include "server/grpc/message_reader.h"

namespace tactus {

class H2Connection;

class H2Stream final : public ServerCall,
                       public H2Session::Stream,
                       public std::enable_shared_from_this<H2Stream> {
 public:
  using Clock = std::chrono::steady_clock;

  H2Stream(std::shared_ptr<H2Connection> connection, std::int32_t id);
  ~H2Stream() override;

  void Send(OutMessage message) override;
  void End(CallEnd end) override;
  void ReadOn() override;
  void Post(std::move_only_function<void()> task) override;
  void Decode(std::function<void()> task) override;
  Duration Way() const override;

  void OnField(std::string_view name, std::string_view value) override;
  void OnTooLarge() override { too_large_ = true; }
  void OnHead() override;
  void OnBytes(std::span<const std::byte> bytes) override;
  void OnNoMore() override;
  void OnClosed() override;
  Ready OutReady(std::size_t most) override;
  void OutTake(std::size_t size, H2Output& out) override;
  H2Session::Fields OutTrailers() override;

  // The client sends no more on the connection: what it has not said in full ends.
  void OnCut();
  // Whether it only waits for news (RpcMethod::idles).
  bool idles() const { return rpc_ != nullptr && rpc_->idles; }
  // What it has sent is out.
  void OnSent();
  // Lets the client send what is agreed to, and a window's worth of what comes behind it.
  void Widen();
  // Ends it when a time limit has passed.
  void CheckTime(Clock::time_point now);
  // The grace of a server that stops is over.
  void Expire();

 private:
  Status CheckHead();
  void Feed(std::span<const std::byte> bytes);
  bool Begun(std::span<const std::byte> first);
  void NoMore();
  void GiveUp(CallEnd end);
  void Finish(CallEnd end);
  void RefuseHttp(std::string_view status);

  const std::shared_ptr<H2Connection> connection_;
  const std::int32_t id_;

  // What is known of the header:
  bool headed_ = false;  // it is whole
  bool post_ = false;
  bool grpc_ = false;
  bool too_large_ = false;
  bool coding_known_ = true;
  std::optional<std::string> timeout_;
  std::string authorization_;

  const RpcMethod* rpc_ = nullptr;
  std::shared_ptr<CallMethod> method_;
  MessageReader reader_;
  std::vector<std::byte> held_;  // came before the method takes it: less than a window
  bool no_more_ = false;         // the client has said all
  bool whole_ = false;           // a message has come
  bool deaf_ = false;            // what comes is thrown away
  bool responded_ = false;       // the header of the answer is out
  bool ended_ = false;
  bool closed_ = false;
  Clock::time_point message_begun_;
  std::optional<Clock::time_point> bring_by_;  // the message that is awaited
  Clock::time_point moved_;                    // when something last went out, or was there to go

  std::deque<OutMessage::Piece> out_;
  std::size_t out_size_ = 0;
  CallEnd end_;
  std::string code_;  // of the end, as it is written
};

}  // namespace tactus
