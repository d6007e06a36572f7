// One event loop and the connections that live on it. Includes Boost.Asio: for server/net and the
// protocols' connections only.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "server/net/loop_turns.h"
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

  // From this thread: closes a connection that has no request under way. One of the address that
  // has most of them, if it has more than the newcomer's; else the one that has been without a word
  // for longest. Returns its address; nothing: all are busy.
  std::optional<std::string> MakeRoom(const NetConnection& newcomer);

  // From this thread: what can wait for the calls that are served (handshakes, bodies that are
  // thrown away). Pieces hold their connection.
  LoopTurns& turns() { return turns_; }

  // From this thread.
  void Add(NetConnection* connection);
  void Remove(NetConnection* connection);

 private:
  using Clock = std::chrono::steady_clock;
  void Sweep();

  const std::size_t index_;
  const std::shared_ptr<NetContext> server_;
  // One thread runs it, but others post to it.
  boost::asio::io_context io_;
  boost::asio::steady_timer sweep_;
  std::unordered_set<NetConnection*> connections_;
  std::unordered_map<std::string, int> by_address_;  // how many of them
  LoopTurns turns_;
  bool swept_ = false;
  bool draining_ = false;
  bool expired_ = false;  // every connection has been told that the grace is over
  Clock::time_point drain_until_;
  Clock::time_point abort_at_;  // once they have been told
  std::chrono::milliseconds farewell_{};
};

}  // namespace tactus
