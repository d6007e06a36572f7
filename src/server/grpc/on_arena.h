// A protobuf message with everything it holds in one piece of memory: a call's message is made and
// dropped for each call, and its maps and strings would cost an allocation for every field.
#pragma once

#include <array>
#include <cstddef>

#include <google/protobuf/arena.h>

namespace tactus {

template <class Message>
class OnArena {
 public:
  OnArena() = default;
  OnArena(const OnArena&) = delete;
  OnArena& operator=(const OnArena&) = delete;

  Message& operator*() { return *message_; }
  Message* operator->() { return message_; }
  Message* get() { return message_; }

 private:
  // Enough for a call of a few tensors, but for their bytes; the arena grows by itself.
  alignas(std::max_align_t) std::array<char, 2048> block_;
  google::protobuf::Arena arena_{block_.data(), block_.size()};
  Message* const message_ = google::protobuf::Arena::CreateMessage<Message>(&arena_);
};

}  // namespace tactus
