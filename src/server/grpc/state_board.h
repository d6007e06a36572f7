// States that clients watch: each hears of one at the start of its stream, and of each change.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/grpc/call.h"

namespace tactus {

// Thread-safe. Streams may outlive it.
class StateBoard {
 public:
  // The state that a request asks for. An error ends the stream.
  using KeyOf = std::function<Expected<std::string>(const Message& request)>;

  // What those hear who ask for a state that there is not.
  explicit StateBoard(std::string unknown = "");

  // `message`: the state as it is told, serialised.
  void Tell(const std::string& key, std::string message);
  std::optional<std::string> Find(const std::string& key) const;
  // Ends all streams, and those that come later at once.
  void EndStreams(CallEnd end);

  RpcMethod Watch(std::size_t most_bytes, KeyOf key_of) const;

 private:
  std::shared_ptr<struct BoardState> state_;
};

}  // namespace tactus
