#include "server/net/net_server.h"

#include <future>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <sys/socket.h>

#include "base/check.h"
#include "server/net/listening_socket.h"
#include "server/net/net_connection.h"
#include "server/net/net_newcomer.h"

namespace tactus {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using NetAcceptor = asio::basic_socket_acceptor<Protocol>;

// After a failed accept (no file descriptors left) the next try waits, or it would fail at once.
constexpr std::chrono::milliseconds kAcceptPause{100};

constexpr int kAcceptAtOnce = 64;

}  // namespace

void NetContext::Warn(const std::string& line) {
  constexpr std::chrono::minutes kAgain{1};
  if (warn == nullptr) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  auto before = warned.load();
  if (before != 0 && now - std::chrono::steady_clock::duration(before) < kAgain) return;
  if (warned.compare_exchange_strong(before, now.count())) warn(protocol + (": " + line));
}

std::shared_ptr<ClientLimits> NoClientLimits(std::size_t max_pending_bytes) {
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max() / 2;
  return std::make_shared<ClientLimits>(ClientLimitOptions{.calls = kAny,
                                                           .rate = 0,
                                                           .bytes = kAny,
                                                           .connections = kAny,
                                                           .all_bytes = max_pending_bytes});
}

struct NetServer::Body {
  std::shared_ptr<NetContext> context;
  int thread_count = 1;
  Make make;
  TlsContexts tls;  // of the first I/O thread
  std::vector<std::shared_ptr<IoThread>> io;
  std::vector<std::thread> threads;
  ListeningSocket socket;
  std::optional<NetAcceptor> acceptor;  // on the first I/O thread
  std::optional<asio::steady_timer> pause;
  std::size_t next = 0;  // the I/O thread of the next connection
  bool closed = false;

  void Accept();
  void OnAccept(error_code error, ClientStream::Socket socket, std::shared_ptr<IoThread> thread);
  void Welcome(ClientStream::Socket socket, std::shared_ptr<IoThread> thread);
};

void NetServer::Body::Accept() {
  std::shared_ptr<IoThread> thread = io[next++ % io.size()];
  asio::io_context& loop = thread->io();
  acceptor->async_accept(loop, [this, thread = std::move(thread)](
                                   error_code error, ClientStream::Socket accepted) mutable {
    OnAccept(error, std::move(accepted), std::move(thread));
  });
}

void NetServer::Body::OnAccept(error_code error, ClientStream::Socket accepted,
                               std::shared_ptr<IoThread> thread) {
  if (!acceptor->is_open()) return;
  if (error) {
    pause->expires_after(kAcceptPause);
    pause->async_wait([this](error_code) {
      if (acceptor->is_open()) Accept();
    });
    return;
  }
  Welcome(std::move(accepted), std::move(thread));
  // The others that wait too: what each costs comes later, by turns.
  acceptor->non_blocking(true, error);
  for (int i = 1; i < kAcceptAtOnce && !error; ++i) {
    std::shared_ptr<IoThread> other = io[next++ % io.size()];
    ClientStream::Socket more(other->io());
    acceptor->accept(more, error);
    if (!error) Welcome(std::move(more), std::move(other));
  }
  Accept();
}

void NetServer::Body::Welcome(ClientStream::Socket accepted, std::shared_ptr<IoThread> thread) {
  const bool full = context->connections.fetch_add(1) >= context->max_connections;
  asio::io_context& loop = thread->io();
  auto connection = make({.socket = std::move(accepted),
                          .tls = tls.Of(context->access.get()),
                          .thread = std::move(thread)});
  asio::post(loop, [connection = std::move(connection), full] { connection->Welcome(full); });
}

NetServer::NetServer(std::shared_ptr<NetContext> context, int threads, std::string protocol,
                     Make make)
    : body_(std::make_unique<Body>()) {
  body_->context = std::move(context);
  body_->thread_count = threads;
  body_->make = std::move(make);
  body_->tls = TlsContexts(std::move(protocol));
}

NetServer::~NetServer() { CHECK(body_->threads.empty(), "a server is stopped before it goes"); }

bool NetServer::started() const { return !body_->threads.empty(); }

Expected<std::uint16_t> NetServer::Start(const std::string& address, std::uint16_t port) {
  Body& body = *body_;
  CHECK(body.io.empty(), "a server starts once");
  for (int i = 0; i < body.thread_count; ++i) {
    body.io.push_back(std::make_shared<IoThread>(static_cast<std::size_t>(i), body.context));
  }
  if (const Status made = body.tls.Make(body.context->access.get()); !made) {
    return std::unexpected(made.error());
  }
  const Expected<std::uint16_t> listens = body.socket.Open(address, port);
  if (!listens) return listens;
  body.acceptor.emplace(body.io[0]->io());
  body.acceptor->assign(Protocol(body.socket.family(), 0), body.socket.Release());
  body.pause.emplace(body.io[0]->io());
  body.Accept();
  for (const auto& io : body.io) body.threads.emplace_back([io] { io->Run(); });
  return listens;
}

void NetServer::Close() {
  Body& body = *body_;
  if (body.threads.empty() || std::exchange(body.closed, true)) return;
  std::promise<void> done;
  asio::post(body.io[0]->io(), [&] {
    error_code ignored;
    body.acceptor->close(ignored);
    body.pause->cancel();
    done.set_value();
  });
  done.get_future().wait();
  body.socket.Remove();
}

void NetServer::Drain(std::chrono::milliseconds grace, std::chrono::milliseconds farewell) {
  for (const auto& io : body_->io) io->Drain(grace, farewell);
}

void NetServer::Join() {
  for (std::thread& thread : body_->threads) thread.join();
  body_->threads.clear();
}

}  // namespace tactus
