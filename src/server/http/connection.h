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

#include "server/access/client_limits.h"
#include "server/http/http_message.h"
#include "server/http/request_reader.h"
#include "server/http/server_context.h"
#include "server/net/net_connection.h"
#include "server/net/net_newcomer.h"

namespace tactus {

// While a request is handled the socket is read on: a reset means that the client has left, and
// what comes instead is the next request, which waits in the reader. The end of what it sends means
// no more than that: it has its answers still.
class Connection final : public Exchange, public NetConnection {
 public:
  Connection(NetServer::Newcomer&& newcomer, std::shared_ptr<ServerContext> server);

  void Answer(std::move_only_function<HttpResponse()> make) override;
  void AnswerHeavy(std::move_only_function<HttpResponse()> make) override;

  bool MayGo(Clock::time_point now, Clock::duration silence) const override;
  void CheckTime(Clock::time_point now) override;
  void CloseIfIdle() override;
  void Expire() override;
  void Abort() override;

 private:
  enum class Phase {
    kShaking,    // hands for TLS, or is refused
    kReading,    // a request is awaited or arriving
    kHandling,   // a request is whole and has no answer yet
    kWriting,    // its answer is going out
    kStreaming,  // and goes on, piece by piece
    kLingering,  // the last answer is out; what still comes is thrown away
    kClosed,
  };

  // Which of the limits on a request's arrival runs.
  enum class Arrival { kNothing, kHead, kBody };

  std::shared_ptr<Connection> Self() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }
  std::chrono::milliseconds ShakeLimit() const override { return options().head_timeout; }
  void Begin() override;
  void Refuse(const std::optional<std::string>& beyond) override;
  std::expected<AdmittedHead, HttpResponse> Admit(const RequestHead& head);
  void Read();
  void AwakeAt(std::size_t bytes);
  void AwaitDiscard();
  void Discard();
  void OnRead(boost::system::error_code error, std::size_t n);
  void OnEnd();
  void Advance(RequestReader::State state);
  // A call that is refused before the handler has it; what else needs no right to infer is none.
  void Count(RefusalReason why);
  void Handle();
  void WriteContinue();
  bool Heavy();
  std::optional<CallId> HandleOn(std::size_t thread);
  void OnHandled(std::optional<CallId> call);
  void OnAnswer(std::move_only_function<HttpResponse()> make);
  void Write(HttpResponse response, bool keep_alive);
  void OnWritten(boost::system::error_code error);
  void AskForMore();
  void WriteMore(std::string piece);
  void Linger();
  void Close();

  void LimitArrival(Arrival arrival, std::chrono::milliseconds limit);
  const HttpOptions& options() const { return server_->options; }

  const std::shared_ptr<ServerContext> server_;
  std::string client_;  // of the request: a token's name, or the address
  std::optional<ClientLimits::Call> allowed_;
  // Place and refusal of the request that comes, as HttpRequest has them.
  std::shared_ptr<BodyAdmission::Place> place_;
  std::optional<Error> unread_;
  RequestReader reader_;
  Phase phase_ = Phase::kShaking;
  bool reading_ = false;      // a read is under way
  std::size_t awake_at_ = 1;  // bytes that wake a waiting read
  Arrival arrival_ = Arrival::kNothing;
  Clock::time_point begun_;  // when the first bytes of the request came
  bool interim_ = false;     // "100 Continue" is going out
  bool head_only_ = false;   // the answer goes without its body
  bool keep_alive_ = false;
  bool client_ended_ = false;  // it closed its side while it waited for an answer
  std::optional<CallId> call_;
  bool handled_ = true;                            // the handler has returned
  std::move_only_function<HttpResponse()> early_;  // the answer that came before it had
  std::optional<HttpResponse> waiting_;            // an answer that waits for the interim one
  // The answer that goes out.
  std::string head_;
  HttpResponse response_;
  std::vector<boost::asio::const_buffer> buffers_;
  std::shared_ptr<LongBody> rest_;  // kStreaming
  std::string piece_;               // of it, that goes out
  Scope needs_ = Scope::kOpen;      // the request ...
  std::string authorization_;       // ... and what it showed
};

}  // namespace tactus
