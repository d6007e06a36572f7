// What all connections of an HTTP server share.
#pragma once

#include <memory>

#include "server/http/http_message.h"
#include "server/http/http_server.h"
#include "server/net/net_context.h"

namespace tactus {

struct ServerContext : NetContext {
  HttpOptions options;
  std::unique_ptr<HttpHandler> handler;
};

}  // namespace tactus
