#include "server/http/connection.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "server/access/access.h"

namespace tactus {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Long enough for a client that sends a large body to notice the answer that refuses it; a socket
// closed with unread bytes would take the answer back.
constexpr std::chrono::milliseconds kLinger{2000};

// A large body is taken in pieces of this size where it does not come at once: a reader that is
// faster than its sender on the same machine makes it wake a thread with every few packets.
constexpr std::size_t kBodyAtOnce = std::size_t{64} << 10;
// Of a body that is thrown away, between two looks at all that has come.
constexpr std::size_t kDiscardAtOnce = std::size_t{256} << 10;

// A text of this size is read in a millisecond or so, and a client that sends many is one of many.
constexpr std::size_t kHeavyText = std::size_t{32} << 10;

// A body that could never be held is refused as too large, not for now.
ReaderLimits LimitsOf(const ServerContext& server) {
  const ClientLimitOptions& limits = server.limits->options();
  return {.head = server.options.max_header,
          .body = std::min({server.options.max_body, limits.bytes, limits.all_bytes})};
}

// A browser says for which page it asks; any page may have it send something to this machine.
bool IsForeign(const RequestHead& head) {
  if (head.origin.empty()) return false;
  const std::size_t scheme = head.origin.find("://");
  if (scheme == head.origin.npos) return true;  // "null"
  const std::string_view from = head.origin.substr(scheme + 3);
  return !boost::beast::iequals({from.data(), from.size()}, {head.host.data(), head.host.size()});
}

HttpResponse NoMemory() {
  HttpResponse response = ErrorResponse(503, "no memory for this call: try again later");
  response.fields = "Retry-After: 1\r\n";
  return response;
}

HttpResponse Made(std::move_only_function<HttpResponse()>& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

}  // namespace

Connection::Connection(NetServer::Newcomer&& newcomer, std::shared_ptr<ServerContext> server)
    : NetConnection(std::move(newcomer.socket), std::move(newcomer.tls),
                    std::move(newcomer.thread)),
      server_(std::move(server)),
      reader_(LimitsOf(*server_), [this](const RequestHead& head) { return Admit(head); }) {}

void Connection::Begin() {
  phase_ = Phase::kReading;
  Limit(options().idle_timeout);
  Read();
}

void Connection::Refuse(const std::optional<std::string>& beyond) {
  if (stream().secret()) return Close();  // nobody shakes hands to be refused
  HttpResponse response = beyond ? ErrorResponse(429, *beyond)
                                 : ErrorResponse(503, "too many connections: try again later");
  response.fields = "Retry-After: 1\r\n";
  Write(std::move(response), false);
}

bool Connection::MayGo(Clock::time_point now, Clock::duration silence) const {
  if (phase_ == Phase::kReading && reader_.idle()) return true;
  const bool arriving = phase_ == Phase::kShaking || phase_ == Phase::kReading;
  return arriving && now - heard() >= silence;
}

std::expected<AdmittedHead, HttpResponse> Connection::Admit(const RequestHead& head) {
  const Scope needs = server_->handler->Needs(head.verb, head.target);
  client_ = address();
  needs_ = needs;
  authorization_ = head.authorization;
  if (needs == Scope::kAdmin && IsForeign(head)) {
    return std::unexpected(ErrorResponse(
        403, "a page of another origin may not change the server: its Origin is not the Host"));
  }
  if (options().access != nullptr) {
    Admission admission = options().access->Admit(needs, head.authorization);
    if (!admission.admitted()) {
      Count(admission.http() == 401 ? RefusalReason::kUnauthenticated
                                    : RefusalReason::kPermissionDenied);
      HttpResponse response = ErrorResponse(admission.http(), admission.text);
      if (admission.http() == 401) response.fields = "WWW-Authenticate: Bearer\r\n";
      return std::unexpected(std::move(response));
    }
    if (!admission.client.empty()) client_ = std::move(admission.client);
  }
  if (needs == Scope::kOpen) {
    // Whoever may ask without a token, and as often as it likes, leaves nothing to be kept.
    if (head.length == 0) return AdmittedHead{};
    return std::unexpected(ErrorResponse(413, "this path takes no body"));
  }
  auto allowed = server_->limits->Begin(client_, Clock::now());
  if (!allowed) {
    Count(RefusalReason::kClientLimit);
    HttpResponse response = ErrorResponse(429, allowed.error().text);
    response.fields = fmt::format("Retry-After: {}\r\n", allowed.error().retry_after);
    return std::unexpected(std::move(response));
  }
  allowed_ = *std::move(allowed);
  AdmittedHead admitted{.budget = allowed_->bytes};
  if (head.verb != Verb::kPost || !head.length) return admitted;
  auto place = server_->handler->EnterBody(head.target, *head.length, head.limit);
  if (place) {
    place_ = *std::move(place);
    return admitted;
  }
  if (head.waits) {
    // Whether it comes after all, nobody can tell.
    HttpResponse response = ErrorResponse(503, place.error().message);
    response.fields = "Retry-After: 1\r\n";
    unread_ = std::move(place.error());
    return std::unexpected(std::move(response));
  }
  unread_ = std::move(place.error());
  admitted.skips = true;
  return admitted;
}

void Connection::Count(RefusalReason why) {
  if (needs_ == Scope::kInfer && options().refused) options().refused(why);
}

void Connection::Read() {
  if (reading_ || phase_ == Phase::kClosed) return;
  if (client_ended_) return phase_ == Phase::kReading ? Linger() : void();
  const std::span<char> space = reader_.Space();
  if (reader_.state() == RequestReader::State::kFailed && phase_ == Phase::kReading) {
    return Advance(reader_.state());  // there is no memory for the rest of a body
  }
  if (space.empty()) {
    // The next requests fill the buffer: they wait for this one's answer, or will have none.
    if (phase_ == Phase::kLingering || phase_ == Phase::kStreaming) Close();
    return;
  }
  reading_ = true;
  AwakeAt(std::clamp(reader_.missing(), std::size_t{1}, kBodyAtOnce));
  if (reader_.skips() && !stream().secret()) return AwaitDiscard();
  stream().Read(space,
                [self = Self()](error_code error, std::size_t n) { self->OnRead(error, n); });
}

// Bodies that are thrown away must not hold up those that are read: they have what time is left.
void Connection::AwaitDiscard() {
  stream().socket().async_wait(asio::socket_base::wait_read, [self = Self()](error_code error) {
    if (error) return self->OnRead(error, 0);
    self->thread().turns().Add(self->address(), [self] { self->Discard(); });
  });
}

void Connection::Discard() {
  reading_ = false;
  if (phase_ != Phase::kReading) return Read();
  for (std::size_t left = kDiscardAtOnce; left > 0;) {
    const std::span<char> space = reader_.Space();
    const std::size_t most = std::min(space.size(), left);
    // The kernel spares itself the copy.
    const ssize_t n =
        recv(stream().socket().native_handle(), space.data(), most, MSG_TRUNC | MSG_DONTWAIT);
    if (n == 0) return OnRead(asio::error::eof, 0);
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) break;
      return OnRead(error_code(errno, boost::system::system_category()), 0);
    }
    left -= static_cast<std::size_t>(n);
    Heard();
    if (reader_.Commit(static_cast<std::size_t>(n)) != RequestReader::State::kBody) {
      return Advance(reader_.state());
    }
  }
  Read();
}

// What is there is read at once, however little; then the kernel wakes us when there is so much, or
// when the client has gone.
void Connection::AwakeAt(std::size_t bytes) {
  if (stream().secret()) return;  // what is missing is no number of bytes on the wire
  if (std::exchange(awake_at_, bytes) == bytes) return;
  error_code ignored;
  stream().socket().set_option(asio::socket_base::receive_low_watermark(static_cast<int>(bytes)),
                               ignored);
}

void Connection::OnRead(error_code error, std::size_t n) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) {
    // Whoever has said all may still listen; but not to an answer that has no end.
    const bool answering = phase_ == Phase::kHandling || phase_ == Phase::kWriting;
    return IsEnd(error) && answering ? OnEnd() : Abort();
  }
  if (phase_ == Phase::kLingering) return Read();
  Heard();
  if (reader_.idle()) begun_ = came();
  const RequestReader::State state = reader_.Commit(n);
  if (phase_ == Phase::kReading) return Advance(state);
  Read();
}

// The client sends no more. Whether it still listens shows where it is told something that it will
// pass over (RFC 9110, 15.2): the host of a client that has gone resets the connection. Else it
// shows where a later write or the kernel's question fails.
void Connection::OnEnd() {
  client_ended_ = true;
  if (phase_ == Phase::kHandling && reader_.takes_interim() && !interim_) WriteContinue();
  NoticeSilentEnd();
  stream().socket().async_wait(asio::socket_base::wait_error, [self = Self()](error_code error) {
    if (!error && self->phase_ == Phase::kHandling) self->Abort();
  });
}

// Acts on what the reader has; called when a request may have become whole.
void Connection::Advance(RequestReader::State state) {
  switch (state) {
    case RequestReader::State::kWhole:
      return Handle();
    case RequestReader::State::kFailed:
      // Its head was let in, and its body was not.
      if (allowed_ && !unread_) Count(ReasonOf(reader_.failure()));
      return Write(reader_.failure(), false);
    case RequestReader::State::kHead:
      if (!reader_.idle()) LimitArrival(Arrival::kHead, options().head_timeout);
      break;
    case RequestReader::State::kBody:
      LimitArrival(Arrival::kBody, options().body_timeout);
      if (reader_.TakeContinue()) WriteContinue();
      break;
  }
  Read();
}

// Runs from the first byte of the head and of the body: more bytes do not prolong it.
void Connection::LimitArrival(Arrival arrival, std::chrono::milliseconds limit) {
  if (std::exchange(arrival_, arrival) != arrival) Limit(limit);
}

void Connection::WriteContinue() {
  static constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
  interim_ = true;
  asio::async_write(stream(), asio::buffer(kInterim.data(), kInterim.size()),
                    [self = Self()](error_code error, std::size_t) {
                      self->interim_ = false;
                      if (error) return self->Abort();
                      if (!self->waiting_) return;
                      HttpResponse response = *std::exchange(self->waiting_, std::nullopt);
                      self->Write(std::move(response), self->keep_alive_);
                    });
}

void Connection::Handle() {
  phase_ = Phase::kHandling;
  arrival_ = Arrival::kNothing;
  Unlimit();  // the call has a deadline of its own
  HttpRequest& request = reader_.request();
  request.received = begun_;
  request.way = server_->delay.BothWays();
  request.place = std::exchange(place_, nullptr);
  request.unread = std::exchange(unread_, std::nullopt);
  head_only_ = request.verb == Verb::kHead;
  keep_alive_ = reader_.keep_alive();
  call_.reset();
  if (server_->stopping.load(std::memory_order_relaxed)) {
    Count(RefusalReason::kUnavailable);
    HttpResponse response = ErrorResponse(503, "Server not ready: it is stopping");
    response.fields = "Retry-After: 1\r\n";
    return Write(std::move(response), false);
  }
  handled_ = false;
  if (!Heavy()) {
    OnHandled(HandleOn(thread().index()));
    return Read();
  }
  server_->decode->Add(client_, [self = Self()](std::size_t number) mutable {
    const auto threads = static_cast<std::size_t>(self->options().threads);
    const std::optional<CallId> call = self->HandleOn(threads + number);
    asio::io_context& loop = self->thread().io();
    asio::post(loop, [self = std::move(self), call] { self->OnHandled(call); });
  });
  Read();
}

// Whether the request takes long to read. Tensors as bytes do not: what counts is the text.
bool Connection::Heavy() {
  const HttpRequest& request = reader_.request();
  if (request.body.empty()) return false;
  if (!request.content_encoding.empty()) return true;
  return !request.inference_header_length && request.body.size() > kHeavyText;
}

// On the I/O thread, or on one that decodes: the request stays as it is until OnHandled.
std::optional<CallId> Connection::HandleOn(std::size_t thread) {
  HttpRequest& request = reader_.request();
  request.client = client_;
  try {
    return server_->handler->Handle(request, thread, Self());
  } catch (const std::bad_alloc&) {
    Answer([] { return NoMemory(); });
    return std::nullopt;
  }
}

void Connection::OnHandled(std::optional<CallId> call) {
  handled_ = true;
  reader_.request().body_owner = nullptr;  // whoever needs the body holds it by now
  if (phase_ == Phase::kClosed) {
    if (call) server_->handler->Cancel(*call);  // the client left meanwhile
    early_ = nullptr;                           // it holds this connection
    return;
  }
  call_ = call;
  if (early_) OnAnswer(std::exchange(early_, nullptr));
}

void Connection::Answer(std::move_only_function<HttpResponse()> make) {
  // A call that was answered while it was handled (HandleOn) goes on as soon as that is done.
  if (thread().io().get_executor().running_in_this_thread() && phase_ == Phase::kHandling &&
      !handled_) {
    server_->delay.Note({});
    early_ = std::move(make);
    return;
  }
  asio::post(thread().io(),
             [self = Self(), make = std::move(make), posted = Clock::now()]() mutable {
               self->server_->delay.Note(Clock::now() - posted);
               if (self->phase_ != Phase::kHandling) return;
               if (self->handled_) return self->OnAnswer(std::move(make));
               self->early_ = std::move(make);
             });
}

void Connection::AnswerHeavy(std::move_only_function<HttpResponse()> make) {
  // The connection has the next request only once this one is answered, so `client_` stays.
  auto shared = std::make_shared<std::move_only_function<HttpResponse()>>(std::move(make));
  server_->decode->Add(client_, [self = Self(), make = std::move(shared)](std::size_t) {
    auto response = std::make_shared<HttpResponse>(Made(*make));
    self->Answer([response] { return std::move(*response); });
  });
}

void Connection::OnAnswer(std::move_only_function<HttpResponse()> make) {
  call_.reset();
  Write(Made(make), keep_alive_);
}

void Connection::Write(HttpResponse response, bool keep_alive) {
  phase_ = Phase::kWriting;
  if (interim_) {
    keep_alive_ = keep_alive;
    waiting_ = std::move(response);
    return;
  }
  keep_alive_ = keep_alive && !response.close && response.rest == nullptr &&
                !server_->stopping.load(std::memory_order_relaxed);
  Limit(options().write_timeout);
  response_ = std::move(response);
  head_ = ResponseHead(response_, keep_alive_);
  buffers_.clear();
  buffers_.emplace_back(head_.data(), head_.size());
  if (!head_only_) {
    buffers_.emplace_back(response_.body.data(), response_.body.size());
    for (const auto part : response_.parts) buffers_.emplace_back(part.data(), part.size());
  }
  asio::async_write(stream(), buffers_, AsMuchAsGoes,
                    [self = Self()](error_code error, std::size_t) { self->OnWritten(error); });
}

void Connection::OnWritten(error_code error) {
  if (!error && phase_ == Phase::kWriting && response_.rest != nullptr && !head_only_) {
    rest_ = std::move(response_.rest);
    NoticeSilentEnd();
    return AskForMore();
  }
  response_ = {};
  allowed_.reset();
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  if (!keep_alive_) return Linger();
  phase_ = Phase::kReading;
  head_only_ = false;
  const RequestReader::State state = reader_.Next();
  begun_ = Clock::now();  // of one that came while this one was answered
  if (state == RequestReader::State::kHead) Limit(options().idle_timeout);
  Advance(state);
}

// Waits for the next piece of a long body, however long it takes.
void Connection::AskForMore() {
  phase_ = Phase::kStreaming;
  Unlimit();
  // Whose end was read is not heard of again, though there be nothing to send for hours.
  if (client_ended_ || server_->stopping.load(std::memory_order_relaxed)) return Close();
  rest_->Next([self = Self()](std::string piece) {
    asio::io_context& loop = self->thread().io();
    asio::post(loop,
               [self, piece = std::move(piece)]() mutable { self->WriteMore(std::move(piece)); });
  });
}

void Connection::WriteMore(std::string piece) {
  if (phase_ != Phase::kStreaming) return;
  // A token that was removed meanwhile reads no more.
  const Access* const access = options().access.get();
  if (access != nullptr && !access->Admit(needs_, authorization_).admitted()) piece.clear();
  if (piece.empty()) {
    std::exchange(rest_, nullptr)->Leave();
    allowed_.reset();
    return Linger();
  }
  piece_ = std::move(piece);
  Limit(options().write_timeout);
  asio::async_write(stream(), asio::buffer(piece_), AsMuchAsGoes,
                    [self = Self()](error_code error, std::size_t) {
                      if (self->phase_ != Phase::kStreaming) return;
                      error ? self->Close() : self->AskForMore();
                    });
}

void Connection::Linger() {
  phase_ = Phase::kLingering;
  error_code ignored;
  stream().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  if (client_ended_) return Close();  // nothing comes any more
  Limit(kLinger);
  Read();
}

void Connection::CheckTime(Clock::time_point now) {
  if (!IsLate(now)) return;
  if (phase_ == Phase::kReading && !reader_.idle()) {
    HttpResponse response = ErrorResponse(408, "the request did not arrive in time");
    return Write(std::move(response), false);
  }
  Abort();
}

void Connection::CloseIfIdle() {
  if (phase_ == Phase::kStreaming) return Close();
  if (phase_ == Phase::kReading && reader_.idle()) Close();
}

void Connection::Expire() {
  if (phase_ != Phase::kHandling || !handled_) {
    return phase_ == Phase::kReading || phase_ == Phase::kShaking ? Close() : void();
  }
  const std::optional<CallId> call = std::exchange(call_, std::nullopt);
  HttpResponse response = ErrorResponse(503, "the server stopped before this call was answered");
  response.fields = "Retry-After: 1\r\n";
  Write(std::move(response), false);
  if (call) server_->handler->Cancel(*call);
}

void Connection::Abort() {
  const std::optional<CallId> call = std::exchange(call_, std::nullopt);
  Close();
  if (call) server_->handler->Cancel(*call);
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  const auto self = weak_from_this().lock();  // a long body may hold the last of us
  if (rest_ != nullptr) std::exchange(rest_, nullptr)->Leave();
  allowed_.reset();
  place_.reset();
  CloseSocket();
}

}  // namespace tactus
