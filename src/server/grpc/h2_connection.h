// A client's gRPC connection: HTTP/2 on the client's socket, and its calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>

#include "server/grpc/h2_context.h"
#include "server/grpc/h2_output.h"
#include "server/grpc/h2_session.h"
#include "server/net/net_connection.h"
#include "server/net/net_newcomer.h"
#include "service/way_delay.h"

namespace tactus {

class H2Stream;

// All members are called on the I/O thread.
class H2Connection final : public NetConnection, private H2Session::Owner {
 public:
  H2Connection(NetServer::Newcomer&& newcomer, std::shared_ptr<H2Context> context);
  ~H2Connection() override;

  bool MayGo(Clock::time_point now, Clock::duration silence) const override;
  void CheckTime(Clock::time_point now) override;
  void CloseIfIdle() override {}  // whoever calls now hears that the server stops
  void Expire() override;
  void Abort() override;

  // For the streams.
  // What a client may send in a stream before anybody has agreed to it: HTTP/2's own window. Less,
  // though the model's name and more are in it, where messages were left unread within the last
  // second, since all of it is read.
  std::size_t first_window() const { return unread_ ? kSmallWindow : kWindow; }
  // A message was refused before it was read.
  void OnUnread();
  H2Context& context() { return *context_; }
  // How long calls and answers are on their way of late, beyond what the way takes at best.
  Duration Way() const { return context_->delay.BothWays() + way_.Most(); }
  H2Session& session() { return session_; }
  boost::asio::io_context& io() { return thread().io(); }
  // Writes what there is to write, once all that is ready now has added to it: one write takes the
  // answers of many calls.
  void Pump();
  void Forget(std::int32_t id);
  // All that the stream had has been taken into a write: it hears of it when that is out.
  void Drained(std::shared_ptr<H2Stream> stream) {
    if (!closed()) drained_.push_back(std::move(stream));
  }

 private:
  static constexpr std::size_t kWindow = 65535;
  static constexpr std::size_t kSmallWindow = std::size_t{16} << 10;

  std::chrono::milliseconds ShakeLimit() const override {
    return context_->options.handshake_timeout;
  }
  void Begin() override;
  void Refuse(const std::optional<std::string>& beyond) override;
  H2Session::Stream* OnCall(std::int32_t id) override;
  void OnFirstWindow() override;
  void OnPong(std::uint64_t ping) override;
  // Asks for a sign of the client, which measures the way; now and then while calls come.
  void Ping();
  std::shared_ptr<H2Connection> Self() {
    return std::static_pointer_cast<H2Connection>(shared_from_this());
  }
  void PumpNow();
  void Read();
  void OnRead(boost::system::error_code error, std::size_t n);
  void OnEnd();
  void FindOut(Clock::time_point now);
  std::vector<std::shared_ptr<H2Stream>> Streams() const;
  void OnWritten(boost::system::error_code error);
  void Leave();

  const std::shared_ptr<H2Context> context_;
  H2Session session_;
  std::unordered_map<std::int32_t, std::shared_ptr<H2Stream>> streams_;
  std::vector<std::shared_ptr<H2Stream>> drained_;
  std::unique_ptr<std::byte[]> in_;
  H2Output out_;  // of the write under way
  std::vector<boost::asio::const_buffer> buffers_;
  WayDelay way_;
  std::uint64_t pings_ = 0;  // the last one's name
  bool pinging_ = false;
  Clock::time_point pinged_;
  bool begun_ = false;
  bool shaken_ = false;  // also in HTTP/2
  bool feeding_ = false;
  bool pump_waits_ = false;  // for its turn on the loop
  bool pulling_ = false;
  bool writing_ = false;
  bool leaving_ = false;   // ends behind what goes out
  bool expiring_ = false;  // ends with its last stream
  bool lingering_ = false;
  bool client_ended_ = false;  // it sends no more
  Clock::time_point asked_;    // whether it listens
  Clock::time_point writing_since_;
  std::optional<Clock::time_point> unread_;  // the last message that was; nothing: wide windows
  Clock::time_point active_ = Clock::now();  // when it last had a stream
};

}  // namespace tactus
