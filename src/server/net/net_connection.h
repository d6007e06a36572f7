// One client's connection, whichever protocol it speaks: its place among the others, the TLS
// handshake, its limits of time. All members are called on its I/O thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/system/error_code.hpp>

#include "server/net/client_stream.h"
#include "server/net/io_thread.h"

namespace tactus {

class NetConnection : public std::enable_shared_from_this<NetConnection> {
 public:
  using Clock = std::chrono::steady_clock;

  // `tls` null: in the clear.
  NetConnection(ClientStream::Socket socket, std::shared_ptr<TlsContext> tls,
                std::shared_ptr<IoThread> thread);
  virtual ~NetConnection();
  NetConnection(const NetConnection&) = delete;
  NetConnection& operator=(const NetConnection&) = delete;

  // Takes its place, or is refused; then shakes hands and begins.
  void Welcome(bool full);
  // Its turn to shake hands for TLS has come.
  void Shake();
  const std::string& address() const { return address_; }  // of the client, as its limits know it
  Clock::time_point heard() const { return heard_; }       // when the last bytes were read
  // When they reached this machine, as far as the kernel says it.
  Clock::time_point came() const { return heard_ - stream_.waited(); }

  // A connection that brings a request may be closed for a newcomer after so long without a byte.
  static constexpr std::chrono::seconds kSilence{1};
  // Whether it may be closed for a newcomer: no request is under way, nor one that still comes and
  // of which a byte has come within `silence`.
  virtual bool MayGo(Clock::time_point now, Clock::duration silence) const = 0;
  // Closes when a time limit has passed.
  virtual void CheckTime(Clock::time_point now) = 0;
  // The server stops: closes if no request is under way.
  virtual void CloseIfIdle() = 0;
  // The grace of a server that stops is over: calls under way are cancelled and answered so.
  virtual void Expire() = 0;
  // Cancels what is under way and closes.
  virtual void Abort() = 0;

 protected:
  // Hands are shaken, where it is secret.
  virtual void Begin() = 0;
  // Is one too many: `beyond` of its client, or else of all. Ends it.
  virtual void Refuse(const std::optional<std::string>& beyond) = 0;
  // Whatever the protocol does with a closed connection comes before.
  void CloseSocket();

  // Whether a read ended since the client sends no more, be it without a word (TLS has one for it:
  // what both protocols take says itself whether it is whole).
  static bool IsEnd(boost::system::error_code error);
  // Has the kernel ask after a client that may go without a word, as a laptop that falls asleep.
  void NoticeSilentEnd();

  bool shaken() const { return shaken_; }
  bool closed() const { return closed_; }
  IoThread& thread() { return *thread_; }
  NetContext& server() { return thread_->server(); }
  ClientStream& stream() { return stream_; }
  void Heard() { heard_ = Clock::now(); }
  // Says which limit of time runs from now on.
  void Limit(std::chrono::milliseconds limit) { time_limit_ = Clock::now() + limit; }
  void Unlimit() { time_limit_ = Clock::time_point::max(); }
  bool IsLate(Clock::time_point now) const { return now >= time_limit_; }

  // How long a client has to shake hands.
  virtual std::chrono::milliseconds ShakeLimit() const = 0;

 private:
  friend class IoThread;

  void Start();
  // Closes another for this one; false: all are busy.
  bool MakeRoom();

  const std::shared_ptr<IoThread> thread_;
  // The loop must run until the last connection is gone, also while only the service holds it.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  const std::string address_;
  ClientStream stream_;
  ClientLimits::Lease place_;
  int* crowd_ = nullptr;  // connections of its address on its thread
  bool shaken_ = false;
  bool closed_ = false;
  Clock::time_point time_limit_ = Clock::time_point::max();
  Clock::time_point heard_ = Clock::now();
};

}  // namespace tactus
