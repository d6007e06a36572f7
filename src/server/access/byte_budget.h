// Bytes that may be held, by one client or by all of them together.
#pragma once

#include <atomic>
#include <cstddef>
#include <expected>
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
  // As Take, but one caller at a time, of all clients, may exceed the limits: a request that needs
  // more than a limit would otherwise be refused for ever. Sets `exceeds` for that caller, who
  // returns the bytes by GiveExceeding.
  Taken TakeOrExceed(std::size_t bytes, bool& exceeds) {
    const Taken taken = Take(bytes);
    exceeds = taken != Taken::kYes && !all().exceeded_.exchange(true, std::memory_order_relaxed);
    if (!exceeds) return taken;
    Charge(bytes);
    return Taken::kYes;
  }
  void GiveExceeding(std::size_t bytes) {
    Give(bytes);
    all().exceeded_.store(false, std::memory_order_relaxed);
  }
  // Bytes that are there already, hence beyond the limits too. Returned by Give.
  void Charge(std::size_t bytes) {
    used_.fetch_add(bytes, std::memory_order_relaxed);
    if (whole_ != nullptr) whole_->Charge(bytes);
  }
  void Give(std::size_t bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (whole_ != nullptr) whole_->Give(bytes);
  }

  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t limit() const { return limit_; }

 private:
  ByteBudget& all() { return whole_ != nullptr ? *whole_ : *this; }

  const std::size_t limit_;
  const std::shared_ptr<ByteBudget> whole_;
  std::atomic<std::size_t> used_{0};
  std::atomic<bool> exceeded_{false};  // of the whole
};

// An answer of fewer bytes counts as the server's (--pending-mb), and not as the client's too.
inline constexpr std::size_t kLeastCharged = std::size_t{64} << 10;

// Bytes of a budget, which may be exceeded by one lease at a time. Given back at its end.
class ByteLease {
 public:
  // A null budget has no limit.
  static std::expected<ByteLease, ByteBudget::Taken> Of(std::shared_ptr<ByteBudget> budget,
                                                        std::size_t bytes) {
    ByteLease lease;
    if (budget == nullptr) return lease;
    const ByteBudget::Taken taken = budget->TakeOrExceed(bytes, lease.exceeds_);
    if (taken != ByteBudget::Taken::kYes) return std::unexpected(taken);
    lease.budget_ = std::move(budget);
    lease.bytes_ = bytes;
    return lease;
  }
  // A lease on bytes that are there already: it is neither refused nor the one that may exceed.
  static ByteLease Charge(std::shared_ptr<ByteBudget> budget, std::size_t bytes) {
    ByteLease lease;
    if (budget == nullptr) return lease;
    budget->Charge(bytes);
    lease.budget_ = std::move(budget);
    lease.bytes_ = bytes;
    return lease;
  }
  ByteLease(ByteLease&& other) noexcept = default;
  ByteLease& operator=(ByteLease&&) = delete;
  ~ByteLease() {
    if (budget_ == nullptr) return;
    exceeds_ ? budget_->GiveExceeding(bytes_) : budget_->Give(bytes_);
  }

 private:
  ByteLease() = default;

  std::shared_ptr<ByteBudget> budget_;
  std::size_t bytes_ = 0;
  bool exceeds_ = false;
};

}  // namespace tactus
