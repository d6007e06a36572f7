// What clients wait for, one piece after the other: whoever brings much waits for itself, not the
// others for it.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

namespace tactus {

// From one thread at a time.
template <class Piece>
class ClientTurns {
 public:
  bool empty() const { return turns_.empty(); }

  void Add(const std::string& client, Piece piece) {
    std::deque<Piece>& waiting = waiting_[client];
    if (waiting.empty()) turns_.push_back(client);
    waiting.push_back(std::move(piece));
  }

  // The oldest piece of the client whose turn it is; not while empty.
  Piece Take() {
    std::string client = std::move(turns_.front());
    turns_.pop_front();
    const auto mine = waiting_.find(client);
    Piece piece = std::move(mine->second.front());
    mine->second.pop_front();
    if (mine->second.empty()) {
      waiting_.erase(mine);
    } else {
      turns_.push_back(std::move(client));
    }
    return piece;
  }

 private:
  std::unordered_map<std::string, std::deque<Piece>> waiting_;
  std::deque<std::string> turns_;  // a client stands here once while it has pieces
};

}  // namespace tactus
