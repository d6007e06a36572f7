#include "server/net/net_connection.h"

#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/ssl/error.hpp>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "server/net/listening_socket.h"

namespace tactus {

namespace asio = boost::asio;
using boost::system::error_code;

NetConnection::NetConnection(ClientStream::Socket socket, std::shared_ptr<TlsContext> tls,
                             std::shared_ptr<IoThread> thread)
    : thread_(std::move(thread)),
      work_(asio::make_work_guard(thread_->io())),
      address_(ClientOfSocket(socket.native_handle())),
      stream_(std::move(socket), std::move(tls)) {}

NetConnection::~NetConnection() { thread_->server().connections.fetch_sub(1); }

void NetConnection::Welcome(bool full) {
  auto place = server().limits->Connect(address_);
  thread_->Add(this);
  if (!place) {
    server().Warn(
        fmt::format("{} has {} connections, as many as one client may (connections of "
                    "--client-limits): more of its are closed",
                    address_, server().limits->options().connections));
    return Refuse(place.error().text);
  }
  place_ = *std::move(place);
  if (full && !MakeRoom()) return Refuse(std::nullopt);
  Start();
}

bool NetConnection::MakeRoom() {
  const std::optional<std::string> went = thread_->MakeRoom(*this);
  server().Warn(
      fmt::format("there are {} connections, as many as may be: {}", server().max_connections,
                  went ? "those without a request are closed for new ones, of " + *went + " first"
                       : "all are busy, and new ones are closed"));
  return went.has_value();
}

void NetConnection::Start() {
  error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);  // fails on a Unix socket
  if (server().stopping.load()) return Abort();
  if (!stream_.secret()) {
    stream_.StampArrivals();
    shaken_ = true;
    return Begin();
  }
  Limit(ShakeLimit());
  // What waits for its turn costs nothing but its descriptor.
  stream_.socket().async_wait(
      asio::socket_base::wait_read, [self = shared_from_this()](error_code error) {
        if (self->closed_) return;
        if (error) return self->Abort();
        self->thread_->turns().Add(self->address_, [self] { self->Shake(); });
      });
}

void NetConnection::Shake() {
  if (closed_) return;
  // Whoever has gone already is not worth a signature.
  pollfd gone{.fd = stream_.socket().native_handle(), .events = POLLRDHUP, .revents = 0};
  if (poll(&gone, 1, 0) != 0) return Abort();
  stream_.Shake([self = shared_from_this()](error_code error) {
    if (self->closed_) return;
    if (error) return self->Abort();
    self->shaken_ = true;
    self->Begin();
  });
}

bool NetConnection::IsEnd(error_code error) {
  return error == asio::error::eof || error == asio::ssl::error::stream_truncated;
}

void NetConnection::NoticeSilentEnd() {
  error_code ignored;
  stream_.socket().set_option(asio::socket_base::keep_alive(true), ignored);
  const int fd = stream_.socket().native_handle();
  for (const auto& [name, value] :
       {std::pair(TCP_KEEPIDLE, 15), std::pair(TCP_KEEPINTVL, 5), std::pair(TCP_KEEPCNT, 3)}) {
    setsockopt(fd, IPPROTO_TCP, name, &value, sizeof value);
  }
}

void NetConnection::CloseSocket() {
  closed_ = true;
  place_ = {};
  error_code ignored;
  stream_.socket().close(ignored);
  // Handlers under way hold the connection until they have seen the end.
  thread_->Remove(this);
}

}  // namespace tactus
