// One end of a socket between two processes of this machine: whole messages, with a descriptor
// beside them where one is to be handed over. When the other process dies, this end is told at
// once: whoever waits for a message gets none.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus::isolated {

class Connection {
 public:
  static constexpr Duration kNoLimit{-1};

  // Both ends of a new one; neither outlives an exec.
  static Expected<std::pair<Connection, Connection>> Make();
  // Takes the descriptor.
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();

  int descriptor() const { return descriptor_; }

  // Blocks while the other end does not read. False: it is gone.
  bool Send(std::span<const std::byte> message, int handed_over = -1);
  // A short message, or nothing where the other end does not read just now.
  void SendOrNot(std::span<const std::byte> message);
  // The next message, good until the next call; nothing: the other end is gone, sent more than any
  // message has, or nothing for `limit`. A time in which this process stood still counts little.
  std::optional<std::span<const std::byte>> Receive(Duration limit = kNoLimit);
  // What was handed over with the messages received, in their order: the caller's to close; -1:
  // there is none.
  int TakeHandedOver();

 private:
  bool Read(std::size_t bytes, Duration limit);
  bool AwaitInput(Duration limit) const;

  int descriptor_;
  std::vector<int> handed_over_;   // a message's may come with the one before it
  std::vector<std::byte> buffer_;  // what was read
  std::size_t size_ = 0;           // of it
  std::size_t taken_ = 0;          // by the last message
};

}  // namespace tactus::isolated
