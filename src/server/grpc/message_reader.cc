#include "server/grpc/message_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tactus {

std::size_t MessageReader::Take(std::span<const std::byte> bytes) {
  if (state_ == State::kPrefix) {
    const std::size_t n = std::min(bytes.size(), kPrefixSize - prefix_size_);
    std::memcpy(prefix_.data() + prefix_size_, bytes.data(), n);
    prefix_size_ += n;
    if (prefix_size_ < kPrefixSize) return n;
    size_ = 0;
    for (std::size_t i = 1; i < kPrefixSize; ++i) size_ = size_ << 8 | prefix_[i];
    state_ = State::kBegun;
    return n;
  }
  const std::size_t n = std::min(bytes.size(), size_ - got_);
  if (data_ != nullptr) std::memcpy(data_.get() + got_, bytes.data(), n);
  got_ += n;
  if (got_ == size_) state_ = State::kWhole;
  return n;
}

void MessageReader::Hold() {
  data_ = std::make_shared_for_overwrite<std::byte[]>(size_);
  Skip();
}

void MessageReader::Skip() {
  got_ = 0;
  state_ = size_ == 0 ? State::kWhole : State::kBody;
}

Message MessageReader::Release() {
  state_ = State::kPrefix;
  prefix_size_ = 0;
  return {.data = std::move(data_), .size = size_, .packed = flag() != 0};
}

std::array<std::uint8_t, 5> PrefixOf(std::size_t size) {
  std::array<std::uint8_t, 5> prefix{};
  for (std::size_t i = 4; i > 0; --i, size >>= 8) prefix[i] = static_cast<std::uint8_t>(size);
  return prefix;
}

}  // namespace tactus
