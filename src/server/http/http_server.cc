#include "server/http/http_server.h"

#include <algorithm>
#include <utility>

#include "server/http/connection.h"
#include "server/http/kserve_handler.h"
#include "server/http/server_context.h"
#include "server/net/net_server.h"

namespace tactus {

struct HttpServer::Body {
  Body(HttpOptions options, std::unique_ptr<HttpHandler> handler)
      : context(std::make_shared<ServerContext>()),
        net(context, std::max(options.threads, 1), "", [this](NetServer::Newcomer&& newcomer) {
          return std::make_shared<Connection>(std::move(newcomer), context);
        }) {
    context->access = options.access;
    context->limits = options.limits;
    if (context->limits == nullptr) context->limits = NoClientLimits(options.max_pending_bytes);
    context->lag = options.lag;
    context->shares_cores = options.shares_cores;
    context->max_connections = options.max_connections;
    context->warn = options.warn;
    options.threads = std::max(options.threads, 1);
    options.decode_threads = std::max(options.decode_threads, 1);
    context->decode =
        std::make_unique<DecodeThreads>(static_cast<std::size_t>(options.decode_threads));
    context->options = std::move(options);
    context->handler = std::move(handler);
  }

  const std::shared_ptr<ServerContext> context;
  NetServer net;
  bool stopped = false;
};

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
  const HttpOptions& options = body_->context->options;
  return body_->net.Start(options.address, options.port);
}

void HttpServer::Stop(std::chrono::milliseconds grace) {
  Body& body = *body_;
  if (std::exchange(body.stopped, true) || !body.net.started()) return;
  body.context->handler->Refuse();  // before a client can see that the server stops
  body.net.Close();
  body.context->stopping.store(true);
  body.net.Drain(grace, {});
  body.context->handler->Stop();
  body.net.Join();
  body.context->decode.reset();  // not where the last connection ends, which may be one of them
}

}  // namespace tactus
