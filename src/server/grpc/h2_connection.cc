#include "server/grpc/h2_connection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "server/grpc/h2_stream.h"

namespace tactus {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
constexpr std::size_t kWriteAtOnce = std::size_t{1} << 20;

// For a client to read the last words; a socket closed with unread bytes would take them back.
constexpr std::chrono::milliseconds kLinger{300};

// Between two pings of ours, at least.
constexpr std::chrono::milliseconds kPingAgain{20};

// Between two questions whether a client that sends no more still listens.
constexpr std::chrono::seconds kAskAgain{1};

// For so long a message that was left unread says that more of them will be.
constexpr std::chrono::seconds kUnreadLately{1};

H2Session::Options SessionOptions(const GrpcOptions& options) {
  H2Session::Options session;
  session.max_streams = static_cast<std::uint32_t>(options.max_streams);
  session.max_header = static_cast<std::size_t>(options.max_metadata);
  session.least_ping_interval = options.least_ping_interval;
  return session;
}

}  // namespace

H2Connection::H2Connection(NetServer::Newcomer&& newcomer, std::shared_ptr<H2Context> context)
    : NetConnection(std::move(newcomer.socket), std::move(newcomer.tls),
                    std::move(newcomer.thread)),
      context_(std::move(context)),
      session_(SessionOptions(context_->options), *this) {}

H2Connection::~H2Connection() = default;

void H2Connection::Begin() {
  if (!stream().agreed()) return Abort();
  begun_ = true;
  if (!stream().secret()) Limit(ShakeLimit());
  in_ = std::make_unique_for_overwrite<std::byte[]>(kReadAtOnce);
  Pump();
  Read();
}

void H2Connection::Refuse(const std::optional<std::string>& /*beyond*/) { CloseSocket(); }

bool H2Connection::MayGo(Clock::time_point now, Clock::duration silence) const {
  const auto idles = [](const auto& each) { return each.second->idles(); };
  return std::ranges::all_of(streams_, idles) && (shaken_ || now - heard() >= silence);
}

H2Session::Stream* H2Connection::OnCall(std::int32_t id) {
  auto made = std::make_shared<H2Stream>(Self(), id);
  H2Stream* const stream = made.get();
  streams_.emplace(id, std::move(made));
  Ping();
  return stream;
}

void H2Connection::Ping() {
  const auto now = Clock::now();
  if (pinging_ || now - pinged_ < kPingAgain) return;
  pinging_ = true;
  pinged_ = now;
  session_.Ping(++pings_);
}

void H2Connection::OnPong(std::uint64_t ping) {
  if (ping != pings_ || !std::exchange(pinging_, false)) return;
  way_.Note(Clock::now() - pinged_);
}

void H2Connection::OnUnread() {
  if (!unread_) session_.SetFirstWindow(kSmallWindow);
  unread_ = Clock::now();
}

// What streams were to bring still is more than they may send now.
void H2Connection::OnFirstWindow() {
  for (const auto& [id, each] : streams_) each->Widen();
}

void H2Connection::Forget(std::int32_t id) {
  streams_.erase(id);
  active_ = Clock::now();
}

void H2Connection::Read() {
  stream().Read({reinterpret_cast<char*>(in_.get()), kReadAtOnce},
                [self = Self()](error_code error, std::size_t n) { self->OnRead(error, n); });
}

void H2Connection::OnRead(error_code error, std::size_t n) {
  if (closed()) return;
  if (error) return IsEnd(error) && !lingering_ ? OnEnd() : Abort();
  if (lingering_) return Read();
  Heard();
  feeding_ = true;
  const bool fine = session_.Feed({in_.get(), n});
  feeding_ = false;
  if (closed()) return;
  if (!shaken_ && session_.shaken()) {
    shaken_ = true;
    active_ = Clock::now();
    Unlimit();
  }
  if (!fine || session_.over()) leaving_ = true;
  PumpNow();
  if (!closed()) Read();
}

// The client sends no more. Calls that it has said in full go on, since it may still listen: the
// host of a client that has gone resets the connection where it is sent anything.
void H2Connection::OnEnd() {
  client_ended_ = true;
  for (const auto& each : Streams()) each->OnCut();
  if (streams_.empty() && !writing_) return Abort();
  NoticeSilentEnd();
  stream().socket().async_wait(asio::socket_base::wait_error, [self = Self()](error_code error) {
    if (!error) self->Abort();
  });
  FindOut(Clock::now());
}

// Sends what asks for no answer, which the client could not give.
void H2Connection::FindOut(Clock::time_point now) {
  asked_ = now;
  session_.Widen(0, 1);
  Pump();
}

std::vector<std::shared_ptr<H2Stream>> H2Connection::Streams() const {
  std::vector<std::shared_ptr<H2Stream>> all;
  all.reserve(streams_.size());
  for (const auto& [id, each] : streams_) all.push_back(each);
  return all;
}

void H2Connection::Pump() {
  // After what feeds or writes, it comes by itself.
  if (feeding_ || pulling_ || writing_ || std::exchange(pump_waits_, true)) return;
  asio::post(io(), [self = Self()] {
    self->pump_waits_ = false;
    self->PumpNow();
  });
}

void H2Connection::PumpNow() {
  if (feeding_ || pulling_ || writing_ || lingering_ || closed()) return;
  out_.Clear();
  pulling_ = true;
  const bool fine = session_.Pull(kWriteAtOnce, out_);
  pulling_ = false;
  if (closed()) return;
  if (!fine) return Abort();
  if (out_.empty()) {
    const bool last = (expiring_ || client_ended_) && streams_.empty();
    if (leaving_ || session_.over() || last) Leave();
    return;
  }
  buffers_.clear();
  out_.ForEach(
      [&](std::span<const std::byte> bytes) { buffers_.emplace_back(bytes.data(), bytes.size()); });
  writing_ = true;
  writing_since_ = Clock::now();
  asio::async_write(stream(), buffers_, AsMuchAsGoes,
                    [self = Self()](error_code error, std::size_t) { self->OnWritten(error); });
}

void H2Connection::OnWritten(error_code error) {
  writing_ = false;
  if (closed()) return;
  if (error) return Abort();
  const std::vector<std::shared_ptr<H2Stream>> all = std::exchange(drained_, {});
  for (const auto& each : all) each->OnSent();
  PumpNow();
}

// Says no more; what still comes is thrown away.
void H2Connection::Leave() {
  if (std::exchange(lingering_, true)) return;
  error_code ignored;
  stream().socket().shutdown(asio::socket_base::shutdown_send, ignored);
  if (client_ended_) return Abort();  // nothing comes any more
  Limit(kLinger);
}

void H2Connection::CheckTime(Clock::time_point now) {
  if (IsLate(now)) return Abort();
  if (!begun_ || lingering_) return;
  if (writing_ && now - writing_since_ > context_->options.write_timeout) return Abort();
  if (client_ended_ && now - asked_ >= kAskAgain) FindOut(now);
  if (unread_ && now - *unread_ > kUnreadLately) {
    unread_.reset();
    session_.SetFirstWindow(kWindow);
    Pump();
  }
  if (streams_.empty()) {
    if (!shaken_ || now - active_ < context_->options.idle_timeout) return;
    session_.Goodbye();
    leaving_ = true;
    return Pump();
  }
  for (const auto& each : Streams()) each->CheckTime(now);
}

void H2Connection::Expire() {
  if (!shaken_) return Abort();
  expiring_ = true;
  for (const auto& each : Streams()) each->Expire();
  session_.Goodbye();
  Pump();
}

void H2Connection::Abort() {
  if (closed()) return;
  const auto self = weak_from_this().lock();  // a call may hold the last of us
  CloseSocket();
  // Streams hold their connection.
  drained_.clear();
  const auto all = std::exchange(streams_, {});
  for (const auto& [id, each] : all) each->OnClosed();
}

}  // namespace tactus
