#include "server/http/http_server.h"

#include <algorithm>
#include <future>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "base/check.h"
#include "server/http/client_stream.h"
#include "server/http/connection.h"
#include "server/http/io_thread.h"
#include "server/http/kserve_handler.h"

namespace tactus {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// After a failed accept (no file descriptors left) the next try waits, or it would fail at once.
constexpr std::chrono::milliseconds kAcceptPause{100};

constexpr int kAcceptAtOnce = 64;

// Of one client as much as of all.
std::shared_ptr<ClientLimits> Unlimited(const HttpOptions& options) {
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max() / 2;
  return std::make_shared<ClientLimits>(ClientLimitOptions{.calls = kAny,
                                                           .rate = 0,
                                                           .bytes = kAny,
                                                           .connections = kAny,
                                                           .all_bytes = options.max_pending_bytes});
}

HttpResponse TooMany(int status, std::string_view text) {
  HttpResponse response = ErrorResponse(status, text);
  response.fields = "Retry-After: 1\r\n";
  return response;
}

}  // namespace

struct HttpServer::Body {
  Body(HttpOptions options, std::unique_ptr<HttpHandler> handler)
      : context(std::make_shared<ServerContext>()) {
    options.threads = std::max(options.threads, 1);
    options.decode_threads = std::max(options.decode_threads, 1);
    context->options = std::move(options);
    context->handler = std::move(handler);
    context->limits = context->options.limits;
    if (context->limits == nullptr) context->limits = Unlimited(context->options);
    context->decode =
        std::make_unique<DecodeThreads>(static_cast<std::size_t>(context->options.decode_threads));
  }

  std::shared_ptr<ServerContext> context;
  std::vector<std::shared_ptr<IoThread>> io;
  TlsContexts tls;  // of the first I/O thread
  std::vector<std::thread> threads;
  std::unique_ptr<tcp::acceptor> acceptor;  // on the first I/O thread
  std::unique_ptr<asio::steady_timer> pause;
  std::size_t next = 0;  // the I/O thread of the next connection
  bool stopped = false;

  Expected<std::uint16_t> Listen();
  void Accept();
  void OnAccept(error_code error, tcp::socket socket, std::shared_ptr<IoThread> thread);
  void Welcome(tcp::socket socket, std::shared_ptr<IoThread> thread);
  void CloseAcceptor();
};

Expected<std::uint16_t> HttpServer::Body::Listen() {
  const HttpOptions& options = context->options;
  error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) {
    return InvalidArgument(fmt::format("'{}' is not an IP address to listen on", options.address));
  }
  acceptor = std::make_unique<tcp::acceptor>(io[0]->io());
  const tcp::endpoint endpoint(address, options.port);
  acceptor->open(endpoint.protocol(), error);
  // A server that was just stopped leaves its port in TIME_WAIT.
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(SOMAXCONN, error);
  if (error) {
    return Fail(ErrorCode::kUnavailable, fmt::format("cannot listen on {}:{}: {}", options.address,
                                                     options.port, error.message()));
  }
  return acceptor->local_endpoint().port();
}

void HttpServer::Body::Accept() {
  std::shared_ptr<IoThread> thread = io[next++ % io.size()];
  asio::io_context& loop = thread->io();
  acceptor->async_accept(
      loop, [this, thread = std::move(thread)](error_code error, tcp::socket socket) mutable {
        OnAccept(error, std::move(socket), std::move(thread));
      });
}

void HttpServer::Body::OnAccept(error_code error, tcp::socket socket,
                                std::shared_ptr<IoThread> thread) {
  if (!acceptor->is_open()) return;
  if (error) {
    pause->expires_after(kAcceptPause);
    pause->async_wait([this](error_code) {
      if (acceptor->is_open()) Accept();
    });
    return;
  }
  Welcome(std::move(socket), std::move(thread));
  // The others that wait too: what each costs comes later, by turns.
  acceptor->non_blocking(true, error);
  for (int i = 1; i < kAcceptAtOnce && !error; ++i) {
    std::shared_ptr<IoThread> other = io[next++ % io.size()];
    tcp::socket more(other->io());
    acceptor->accept(more, error);
    if (!error) Welcome(std::move(more), std::move(other));
  }
  Accept();
}

void HttpServer::Body::Welcome(tcp::socket socket, std::shared_ptr<IoThread> thread) {
  const bool full = context->connections.fetch_add(1) >= context->options.max_connections;
  asio::io_context& loop = thread->io();
  auto connection = std::make_shared<Connection>(
      std::move(socket), tls.Of(context->options.access.get()), std::move(thread));
  asio::post(loop, [connection = std::move(connection), full] {
    if (const auto beyond = connection->BeyondLimit()) {
      return connection->Refuse(TooMany(429, *beyond));
    }
    if (!full || connection->thread().MakeRoom()) return connection->Start();
    connection->Refuse(TooMany(503, "too many connections: try again later"));
  });
}

void HttpServer::Body::CloseAcceptor() {
  std::promise<void> closed;
  asio::post(io[0]->io(), [&] {
    error_code ignored;
    acceptor->close(ignored);
    pause->cancel();
    closed.set_value();
  });
  closed.get_future().wait();
}

HttpServer::HttpServer(HttpOptions options, InferenceService& service, StreamSet* streams) {
  auto handler = MakeKServeHandler(options, service, streams);
  body_ = std::make_unique<Body>(std::move(options), std::move(handler));
}

HttpServer::HttpServer(HttpOptions options, std::function<std::string()> text,
                       const InferenceService* health) {
  auto handler = MakeTextHandler(std::move(text), health, options.strict_triton);
  body_ = std::make_unique<Body>(std::move(options), std::move(handler));
}

HttpServer::~HttpServer() { Stop(std::chrono::milliseconds(0)); }

Expected<std::uint16_t> HttpServer::Start() {
  Body& body = *body_;
  CHECK(body.io.empty(), "a server starts once");
  for (int i = 0; i < body.context->options.threads; ++i) {
    body.io.push_back(std::make_shared<IoThread>(static_cast<std::size_t>(i), body.context));
  }
  if (const Status made = body.tls.Make(body.context->options.access.get()); !made) {
    return std::unexpected(made.error());
  }
  const Expected<std::uint16_t> port = body.Listen();
  if (!port) return port;
  body.pause = std::make_unique<asio::steady_timer>(body.io[0]->io());
  body.Accept();
  for (const auto& io : body.io) body.threads.emplace_back([io] { io->Run(); });
  return port;
}

void HttpServer::Stop(std::chrono::milliseconds grace) {
  Body& body = *body_;
  if (std::exchange(body.stopped, true) || body.threads.empty()) return;
  body.context->handler->Refuse();  // before a client can see that the server stops
  body.CloseAcceptor();
  body.context->stopping.store(true);
  for (const auto& io : body.io) io->Drain(grace);
  body.context->handler->Stop();
  for (std::thread& thread : body.threads) thread.join();
  body.context->decode.reset();  // not where the last connection ends, which may be one of them
}

}  // namespace tactus
