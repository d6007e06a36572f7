#include "server/http/http_server.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "base/check.h"
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

}  // namespace

struct HttpServer::Body {
  Body(HttpOptions options, std::unique_ptr<HttpHandler> handler)
      : context(std::make_shared<ServerContext>()) {
    options.threads = std::max(options.threads, 1);
    context->options = std::move(options);
    context->handler = std::move(handler);
    context->budget = std::make_shared<BodyBudget>(context->options.max_pending_bytes);
  }

  std::shared_ptr<ServerContext> context;
  std::vector<std::shared_ptr<IoThread>> io;
  std::vector<std::thread> threads;
  std::unique_ptr<tcp::acceptor> acceptor;  // on the first I/O thread
  std::unique_ptr<asio::steady_timer> pause;
  std::size_t next = 0;  // the I/O thread of the next connection
  bool stopped = false;

  Expected<std::uint16_t> Listen();
  void Accept();
  void OnAccept(error_code error, tcp::socket socket, std::shared_ptr<IoThread> thread);
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
  const bool full = context->connections.fetch_add(1) >= context->options.max_connections;
  asio::io_context& loop = thread->io();
  auto connection = std::make_shared<Connection>(std::move(socket), std::move(thread));
  asio::post(loop, [connection = std::move(connection), full] {
    if (!full) return connection->Start();
    HttpResponse response = ErrorResponse(503, "too many connections: try again later");
    response.fields = "Retry-After: 1\r\n";
    connection->Refuse(std::move(response));
  });
  Accept();
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

HttpServer::HttpServer(HttpOptions options, InferenceService& service) {
  auto handler = MakeKServeHandler(options, service);
  body_ = std::make_unique<Body>(std::move(options), std::move(handler));
}

HttpServer::HttpServer(HttpOptions options, std::function<std::string()> text)
    : body_(std::make_unique<Body>(std::move(options), MakeTextHandler(std::move(text)))) {}

HttpServer::~HttpServer() { Stop(std::chrono::milliseconds(0)); }

Expected<std::uint16_t> HttpServer::Start() {
  Body& body = *body_;
  CHECK(body.io.empty(), "a server starts once");
  for (int i = 0; i < body.context->options.threads; ++i) {
    body.io.push_back(std::make_shared<IoThread>(static_cast<std::size_t>(i), body.context));
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
  body.CloseAcceptor();
  body.context->stopping.store(true);
  for (const auto& io : body.io) io->Drain(grace);
  body.context->handler->Stop();
  for (std::thread& thread : body.threads) thread.join();
}

}  // namespace tactus
