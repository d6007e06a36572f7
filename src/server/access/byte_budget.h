// Bytes that may be held, by one client or by all of them together.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace tactus {

class ByteBudget {
 public:
  // What is taken is taken of `whole` too, if there is one.
  explicit ByteBudget(std::size_t limit, std::shared_ptr<ByteBudget> whole = nullptr)
      : limit_(limit), whole_(std::move(whole)) {}

  enum class Taken { kYes, kBeyondLimit, kBeyondWhole };
  Taken Take(std::size_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return Taken::kBeyondLimit;
    }
    if (whole_ == nullptr || whole_->Take(bytes) == Taken::kYes) return Taken::kYes;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return Taken::kBeyondWhole;
  }
  void Give(std::size_t bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (whole_ != nullptr) whole_->Give(bytes);
  }

  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t limit() const { return limit_; }

 private:
  const std::size_t limit_;
  const std::shared_ptr<ByteBudget> whole_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace tactus
