// One event loop and the connections that live on it. Includes Boost.Asio: for this folder only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <unordered_set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "server/access/client_limits.h"
#include "server/http/client_turns.h"
#include "server/http/decode_threads.h"
#include "server/http/http_message.h"
#include "server/http/http_server.h"
#include "server/http/request_reader.h"

namespace tactus {

class Connection;

// What all connections of a server share.
struct ServerContext {
  HttpOptions options;
  std::unique_ptr<HttpHandler> handler;
  std::shared_ptr<ClientLimits> limits;
  std::unique_ptr<DecodeThreads> decode;  // null once the server has stopped
  std::atomic<std::size_t> connections{0};
  std::atomic<bool> stopping{false};
};

// Kept alive by its connections: the last may go after the server, on a thread of the service.
class IoThread : public std::enable_shared_from_this<IoThread> {
 public:
  IoThread(std::size_t index, std::shared_ptr<ServerContext> server);

  boost::asio::io_context& io() { return io_; }
  ServerContext& server() { return *server_; }
  std::size_t index() const { return index_; }

  // Until Drain, and then until the last connection is gone.
  void Run();
  // From any thread: no new requests; closes what is idle, and all else after `grace`.
  void Drain(std::chrono::milliseconds grace);

  // From this thread: closes the connection that has been without a word for longest, if there is
  // one that has no request under way. False: all are busy.
  bool MakeRoom();

  // From this thread: shakes hands once it is the connection's turn. Addresses take turns, and one
  // signature is made between two looks at all that has come.
  void AwaitShake(std::shared_ptr<Connection> connection);

  // From this thread.
  void Add(Connection* connection) { connections_.insert(connection); }
  void Remove(Connection* connection) { connections_.erase(connection); }

 private:
  void Sweep();
  void ShakeNext();

  const std::size_t index_;
  const std::shared_ptr<ServerContext> server_;
  // One thread runs it, but others post to it.
  boost::asio::io_context io_;
  boost::asio::steady_timer sweep_;
  std::unordered_set<Connection*> connections_;
  ClientTurns<std::shared_ptr<Connection>> shaking_;  // who waits to shake hands, by address
  bool swept_ = false;
  bool draining_ = false;
  bool expired_ = false;  // every connection has been told that the grace is over
  std::chrono::steady_clock::time_point drain_until_;
};

}  // namespace tactus
