// Bytes that somebody holds, as a part of a count that all who hold some share.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace tactus {

class HeldBytes {
 public:
  using Count = std::atomic<std::size_t>;

  HeldBytes() = default;  // none
  // They are taken off the count at its end, which may come after that of whoever made the count.
  HeldBytes(std::shared_ptr<Count> count, std::size_t bytes)
      : count_(std::move(count)), bytes_(bytes) {
    count_->fetch_add(bytes_, std::memory_order_relaxed);
  }
  HeldBytes(HeldBytes&& other) noexcept = default;
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    Return();
    count_ = std::move(other.count_);
    bytes_ = other.bytes_;
    return *this;
  }
  ~HeldBytes() { Return(); }

 private:
  void Return() {
    if (count_ != nullptr) count_->fetch_sub(bytes_, std::memory_order_relaxed);
  }

  std::shared_ptr<Count> count_;
  std::size_t bytes_ = 0;
};

}  // namespace tactus
