// A client that has just come. Includes Boost.Asio.
#pragma once

#include <memory>

#include "server/net/client_stream.h"
#include "server/net/io_thread.h"
#include "server/net/net_server.h"

namespace tactus {

struct NetServer::Newcomer {
  ClientStream::Socket socket;
  std::shared_ptr<TlsContext> tls;  // null: in the clear
  std::shared_ptr<IoThread> thread;
};

}  // namespace tactus
