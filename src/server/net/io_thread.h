// One event loop and the connections that live on it. Includes Boost.Asio: for server/net and the
// protocols' connections only.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <unordered_set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "server/net/client_turns.h"
#include "server/net/net_context.h"

namespace tactus {

class NetConnection;

// Kept alive by its connections: the last may go after the server, on a thread of the service.
class IoThread : public std::enable_shared_from_this<IoThread> {
 public:
  IoThread(std::size_t index, std::shared_ptr<NetContext> server);

  boost::asio::io_context& io() { return io_; }
  NetContext& server() { return *server_; }
  std::size_t index() const { return index_; }

  // Until Drain, and then until the last connection is gone.
  void Run();
  // From any thread: no new requests; closes what is idle, and all else after `grace`. Who is told
  // that the grace is over has `farewell` to take the last words.
  void Drain(std::chrono::milliseconds grace, std::chrono::milliseconds farewell);

  // From this thread: closes the connection that has been without a word for longest, if there is
  // one that has no request under way. False: all are busy.
  bool MakeRoom();

  // From this thread: shakes hands once it is the connection's turn. Addresses take turns, and one
  // signature is made between two looks at all that has come.
  void AwaitShake(std::shared_ptr<NetConnection> connection);

  // From this thread.
  void Add(NetConnection* connection) { connections_.insert(connection); }
  void Remove(NetConnection* connection) { connections_.erase(connection); }

 private:
  using Clock = std::chrono::steady_clock;
  void Sweep();
  void ShakeNext();

  const std::size_t index_;
  const std::shared_ptr<NetContext> server_;
  // One thread runs it, but others post to it.
  boost::asio::io_context io_;
  boost::asio::steady_timer sweep_;
  std::unordered_set<NetConnection*> connections_;
  ClientTurns<std::shared_ptr<NetConnection>> shaking_;  // who waits to shake hands, by address
  bool swept_ = false;
  bool draining_ = false;
  bool expired_ = false;  // every connection has been told that the grace is over
  Clock::time_point drain_until_;
  Clock::time_point abort_at_;  // once they have been told
  std::chrono::milliseconds farewell_{};
};

}  // namespace tactus
