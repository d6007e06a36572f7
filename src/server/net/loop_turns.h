// Work of an event loop that can wait: one piece between two looks at all that has come, and
// clients take turns. Includes Boost.Asio: for server/net and the protocols' connections only.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "server/net/client_turns.h"

namespace tactus {

// From the loop's thread. Whatever a piece holds must keep the turns alive until it has run.
class LoopTurns {
 public:
  using Piece = std::function<void()>;

  explicit LoopTurns(boost::asio::io_context& loop) : loop_(loop) {}

  void Add(const std::string& client, Piece piece) {
    const bool first = pieces_.empty();
    pieces_.Add(client, std::move(piece));
    if (first) Post();
  }

 private:
  void Post() {
    boost::asio::post(loop_, [this] { RunOne(); });
  }

  void RunOne() {
    const Piece piece = pieces_.Take();  // until the end: it keeps us
    const bool last = pieces_.empty();   // what it adds posts for itself
    piece();
    // Behind what the piece has just set off.
    if (!last) Post();
  }

  boost::asio::io_context& loop_;
  ClientTurns<Piece> pieces_;
};

}  // namespace tactus
