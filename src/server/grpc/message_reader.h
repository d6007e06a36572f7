// Takes a call's bytes apart into messages: each stands behind a byte that says whether it is
// packed, and four with its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "server/grpc/call.h"

namespace tactus {

class MessageReader {
 public:
  enum class State {
    kPrefix,  // of a message, or between two
    kBegun,   // its length is there, and space for it is needed
    kBody,
    kWhole,
  };

  State state() const { return state_; }
  // Between two messages.
  bool idle() const { return state_ == State::kPrefix && prefix_size_ == 0; }
  // From kBegun on: of the message.
  std::size_t size() const { return size_; }
  std::uint8_t flag() const { return prefix_[0]; }
  // Bytes of the message that are still to come.
  std::size_t missing() const { return state_ == State::kBody ? size_ - got_ : 0; }

  // How many of the bytes it took: all, or up to the end of a prefix or a message. Not in kBegun
  // or kWhole.
  std::size_t Take(std::span<const std::byte> bytes);
  // In kBegun: makes space, or reads past the message. Throws bad_alloc.
  void Hold();
  void Skip();
  // In kWhole: the message; then comes the next.
  Message Release();

 private:
  static constexpr std::size_t kPrefixSize = 5;

  State state_ = State::kPrefix;
  std::array<std::uint8_t, kPrefixSize> prefix_{};
  std::size_t prefix_size_ = 0;
  std::size_t size_ = 0;
  std::size_t got_ = 0;
  std::shared_ptr<std::byte[]> data_;
};

// The prefix of a message that goes out, not packed.
std::array<std::uint8_t, 5> PrefixOf(std::size_t size);

}  // namespace tactus
