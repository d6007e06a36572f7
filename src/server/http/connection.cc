#include "server/http/connection.h"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

namespace tactus {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Long enough for a client that sends a large body to notice the answer that refuses it; a socket
// closed with unread bytes would take the answer back.
constexpr std::chrono::milliseconds kLinger{2000};

// Asio's own condition hands the kernel 64 kB at a time, and asks for events after each.
std::size_t AsMuchAsGoes(const error_code& error, std::size_t) {
  return error ? 0 : std::size_t{4} << 20;
}

// A large body is taken in pieces of this size where it does not come at once: a reader that is
// faster than its sender on the same machine makes it wake a thread with every few packets.
constexpr std::size_t kBodyAtOnce = std::size_t{64} << 10;

ReaderLimits LimitsOf(const HttpOptions& options) {
  return {.head = options.max_header, .body = options.max_body};
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, std::shared_ptr<IoThread> thread)
    : thread_(std::move(thread)),
      work_(asio::make_work_guard(thread_->io())),
      socket_(std::move(socket)),
      reader_(LimitsOf(thread_->server().options), thread_->server().budget) {}

Connection::~Connection() { thread_->server().connections.fetch_sub(1); }

void Connection::Start() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  thread_->Add(this);
  if (thread_->server().stopping.load()) return Close();
  Limit(options().idle_timeout);
  Read();
}

void Connection::Refuse(HttpResponse response) {
  thread_->Add(this);
  Write(std::move(response), false);
}

void Connection::Read() {
  if (reading_ || phase_ == Phase::kClosed) return;
  const std::span<char> space = reader_.Space();
  if (reader_.state() == RequestReader::State::kFailed && phase_ == Phase::kReading) {
    return Advance(reader_.state());  // there is no memory for the rest of a body
  }
  if (space.empty()) {
    // The next requests fill the buffer: they wait for this one's answer, or will have none.
    if (phase_ == Phase::kLingering) Close();
    return;
  }
  reading_ = true;
  AwakeAt(std::clamp(reader_.missing(), std::size_t{1}, kBodyAtOnce));
  socket_.async_read_some(
      asio::buffer(space.data(), space.size()),
      [self = shared_from_this()](error_code error, std::size_t n) { self->OnRead(error, n); });
}

// What is there is read at once, however little; then the kernel wakes us when there is so much, or
// when the client has gone.
void Connection::AwakeAt(std::size_t bytes) {
  if (std::exchange(awake_at_, bytes) == bytes) return;
  error_code ignored;
  socket_.set_option(asio::socket_base::receive_low_watermark(static_cast<int>(bytes)), ignored);
}

void Connection::OnRead(error_code error, std::size_t n) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) {
    // While an answer goes out, the client may have closed its side on purpose: let it have it.
    if (phase_ == Phase::kWriting) {
      keep_alive_ = false;
      return;
    }
    return Abort();
  }
  if (phase_ == Phase::kLingering) return Read();
  const RequestReader::State state = reader_.Commit(n);
  if (phase_ == Phase::kReading) return Advance(state);
  Read();
}

// Acts on what the reader has; called when a request may have become whole.
void Connection::Advance(RequestReader::State state) {
  switch (state) {
    case RequestReader::State::kWhole:
      return Handle();
    case RequestReader::State::kFailed:
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
  asio::async_write(socket_, asio::buffer(kInterim.data(), kInterim.size()),
                    [self = shared_from_this()](error_code error, std::size_t) {
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
  time_limit_ = Clock::time_point::max();  // the call has a deadline of its own
  HttpRequest& request = reader_.request();
  request.received = Clock::now();
  head_only_ = request.verb == Verb::kHead;
  keep_alive_ = reader_.keep_alive();
  call_.reset();
  if (thread_->server().stopping.load(std::memory_order_relaxed)) {
    HttpResponse response = ErrorResponse(503, "Server not ready: it is stopping");
    response.fields = "Retry-After: 1\r\n";
    return Write(std::move(response), false);
  }
  const std::optional<CallId> call =
      thread_->server().handler->Handle(request, thread_->index(), shared_from_this());
  request.body_owner = nullptr;  // whoever needs the body holds it by now
  call_ = call;
  Read();
}

void Connection::Answer(std::move_only_function<HttpResponse()> make) {
  asio::post(thread_->io(), [self = shared_from_this(), make = std::move(make)]() mutable {
    if (self->phase_ == Phase::kHandling) self->OnAnswer(make());
  });
}

void Connection::OnAnswer(HttpResponse response) {
  call_.reset();
  Write(std::move(response), keep_alive_);
}

void Connection::Write(HttpResponse response, bool keep_alive) {
  phase_ = Phase::kWriting;
  if (interim_) {
    keep_alive_ = keep_alive;
    waiting_ = std::move(response);
    return;
  }
  keep_alive_ =
      keep_alive && !response.close && !thread_->server().stopping.load(std::memory_order_relaxed);
  Limit(options().write_timeout);
  response_ = std::move(response);
  head_ = ResponseHead(response_, keep_alive_);
  buffers_.clear();
  buffers_.emplace_back(head_.data(), head_.size());
  if (!head_only_) {
    buffers_.emplace_back(response_.body.data(), response_.body.size());
    for (const auto part : response_.parts) buffers_.emplace_back(part.data(), part.size());
  }
  asio::async_write(
      socket_, buffers_, AsMuchAsGoes,
      [self = shared_from_this()](error_code error, std::size_t) { self->OnWritten(error); });
}

void Connection::OnWritten(error_code error) {
  response_ = {};
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  if (!keep_alive_) return Linger();
  phase_ = Phase::kReading;
  head_only_ = false;
  const RequestReader::State state = reader_.Next();
  if (state == RequestReader::State::kHead) Limit(options().idle_timeout);
  Advance(state);
}

void Connection::Linger() {
  phase_ = Phase::kLingering;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  Limit(kLinger);
  Read();
}

void Connection::CheckTime(Clock::time_point now) {
  if (now < time_limit_) return;
  if (phase_ == Phase::kReading && !reader_.idle()) {
    HttpResponse response = ErrorResponse(408, "the request did not arrive in time");
    return Write(std::move(response), false);
  }
  Abort();
}

void Connection::CloseIfIdle() {
  if (phase_ == Phase::kReading && reader_.idle()) Close();
}

void Connection::Abort() {
  const std::optional<CallId> call = std::exchange(call_, std::nullopt);
  Close();
  if (call) thread_->server().handler->Cancel(*call);
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  error_code ignored;
  socket_.close(ignored);
  // Handlers under way hold the connection until they have seen the end.
  thread_->Remove(this);
}

}  // namespace tactus
