// One client's connection: reads requests, has them handled one after the other, writes the
// answers.
#pragma once

#include <array>
#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "server/access/client_limits.h"
#include "server/http/client_stream.h"
#include "server/http/http_message.h"
#include "server/http/io_thread.h"
#include "server/http/request_reader.h"

namespace tactus {

// While a request is handled the socket is read on: a reset means that the client has left, and
// what comes instead is the next request, which waits in the reader. The end of what it sends means
// no more than that: it has its answers still. All members but Answer are called on the I/O thread.
class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  // `tls` null: in the clear.
  Connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> tls,
             std::shared_ptr<IoThread> thread);
  ~Connection() override;

  void Start();
  // Its turn to shake hands for TLS has come.
  void Shake();
  const std::string& address() const { return address_; }
  // Answers `response` without reading a request, then closes.
  void Refuse(HttpResponse response);
  void Answer(std::move_only_function<HttpResponse()> make) override;
  void AnswerHeavy(std::move_only_function<HttpResponse()> make) override;

  // Why this client may not have one more connection; from the I/O thread, before Start.
  std::optional<std::string> BeyondLimit();
  // Whether it may be closed for a newcomer: no request is under way, nor one that still comes.
  bool MayGo(Clock::time_point now) const;
  Clock::time_point heard() const { return heard_; }
  IoThread& thread() { return *thread_; }

  // Closes when a time limit has passed.
  void CheckTime(Clock::time_point now);
  // The server stops: closes if no request is under way.
  void CloseIfIdle();
  // The grace of a server that stops is over: a call under way is cancelled and answered so.
  void Expire();
  // Cancels what is under way and closes.
  void Abort();

 private:
  enum class Phase {
    kShaking,    // hands for TLS
    kReading,    // a request is awaited or arriving
    kHandling,   // a request is whole and has no answer yet
    kWriting,    // its answer is going out
    kStreaming,  // and goes on, piece by piece
    kLingering,  // the last answer is out; what still comes is thrown away
    kClosed,
  };

  // Which of the limits on a request's arrival runs.
  enum class Arrival { kNothing, kHead, kBody };

  void Begin();
  std::expected<std::shared_ptr<ByteBudget>, HttpResponse> Admit(const RequestHead& head);
  void Read();
  void AwakeAt(std::size_t bytes);
  void OnRead(boost::system::error_code error, std::size_t n);
  void OnEnd();
  void Advance(RequestReader::State state);
  void Handle();
  void WriteContinue();
  bool Heavy();
  std::optional<CallId> HandleOn(std::size_t thread);
  void OnHandled(std::optional<CallId> call);
  void OnAnswer(std::move_only_function<HttpResponse()> make);
  void Write(HttpResponse response, bool keep_alive);
  void OnWritten(boost::system::error_code error);
  void NoticeSilentEnd();
  void AskForMore();
  void WriteMore(std::string piece);
  void Linger();
  void Close();

  void LimitArrival(Arrival arrival, std::chrono::milliseconds limit);
  // Says which limit of time runs from now on.
  void Limit(std::chrono::milliseconds limit) { time_limit_ = Clock::now() + limit; }
  const HttpOptions& options() { return thread_->server().options; }

  const std::shared_ptr<IoThread> thread_;
  // The loop must run until the last connection is gone, also while only the service holds it.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  const std::string address_;  // of the client, as its limits know it
  ClientStream stream_;
  ClientLimits::Lease place_;
  std::string client_;  // of the request: a token's name, or the address
  std::optional<ClientLimits::Call> allowed_;
  RequestReader reader_;
  Phase phase_ = Phase::kShaking;
  bool reading_ = false;      // a read is under way
  std::size_t awake_at_ = 1;  // bytes that wake a waiting read
  Arrival arrival_ = Arrival::kNothing;
  bool interim_ = false;    // "100 Continue" is going out
  bool head_only_ = false;  // the answer goes without its body
  bool keep_alive_ = false;
  bool client_ended_ = false;  // it closed its side while it waited for an answer
  Clock::time_point time_limit_ = Clock::time_point::max();
  Clock::time_point heard_ = Clock::now();  // when the last bytes came
  std::optional<CallId> call_;
  bool handled_ = true;                            // the handler has returned
  std::move_only_function<HttpResponse()> early_;  // the answer that came before it had
  std::optional<HttpResponse> waiting_;            // an answer that waits for the interim one
  // Of the answer that goes out.
  std::string head_;
  HttpResponse response_;
  std::vector<boost::asio::const_buffer> buffers_;
  std::shared_ptr<LongBody> rest_;  // kStreaming
  std::string piece_;               // of it, that goes out
};

}  // namespace tactus
