// Bounded rings between threads. Sized once, no lock, no allocation after construction.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "base/check.h"

namespace tactus {

inline constexpr std::size_t kCacheLine = 64;

// One producer thread, one consumer thread.
template <class T>
class SpscRing {
 public:
  // Holds at least `capacity` values; the size is rounded up to a power of two.
  explicit SpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
        cells_(std::make_unique<T[]>(mask_ + 1)) {}

  // False when full; the value is then untouched.
  bool TryPush(T&& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - cached_head_ > mask_) {
      cached_head_ = head_.load(std::memory_order_acquire);
      if (tail - cached_head_ > mask_) return false;
    }
    cells_[tail & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool TryPush(const T& value) { return TryPush(T(value)); }

  bool TryPop(T& out) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == cached_tail_) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head == cached_tail_) return false;
    }
    out = std::move(cells_[head & mask_]);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  bool Empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }

  // Many at a time, in place. The producer's: up to `most` free cells in one piece, empty when the
  // ring is full; fewer than are free where the ring turns around. Publish hands over the first n.
  std::span<T> Writable(std::size_t most) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail + most - cached_head_ > mask_ + 1) {
      cached_head_ = head_.load(std::memory_order_acquire);
    }
    const std::size_t free = mask_ + 1 - (tail - cached_head_);
    return {&cells_[tail & mask_], std::min({most, free, mask_ + 1 - (tail & mask_)})};
  }
  void Publish(std::size_t n) {
    tail_.store(tail_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }

  // The consumer's: up to `most` values in one piece, which stay until Consume gives n cells back.
  std::span<const T> Readable(std::size_t most) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (cached_tail_ - head < most) cached_tail_ = tail_.load(std::memory_order_acquire);
    return {&cells_[head & mask_],
            std::min({most, cached_tail_ - head, mask_ + 1 - (head & mask_)})};
  }
  void Consume(std::size_t n) {
    head_.store(head_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }

 private:
  const std::size_t mask_;
  const std::unique_ptr<T[]> cells_;
  alignas(kCacheLine) std::atomic<std::size_t> tail_{0};
  std::size_t cached_head_ = 0;  // the producer's
  alignas(kCacheLine) std::atomic<std::size_t> head_{0};
  std::size_t cached_tail_ = 0;  // the consumer's
};

// Many producer threads, many consumer threads. Each cell carries the turn in which it may be
// written or read (Vyukov's bounded queue), so a slow thread delays only the values behind its own;
// until a slow consumer has moved its value out, the ring is full where it comes round to that
// cell.
template <class T>
class MpmcRing {
 public:
  explicit MpmcRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
        cells_(std::make_unique<Cell[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  // False when full (see above); the value is then untouched.
  bool TryPush(T&& value) {
    std::size_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[tail & mask_];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      const auto ahead = static_cast<std::ptrdiff_t>(turn - tail);
      if (ahead < 0) return false;
      if (ahead > 0) {
        tail = tail_.load(std::memory_order_relaxed);
        continue;
      }
      if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) {
        cell.value = std::move(value);
        cell.turn.store(tail + 1, std::memory_order_release);
        return true;
      }
    }
  }
  bool TryPush(const T& value) { return TryPush(T(value)); }

  // For values of which never more exist than the capacity, so that there is a place for each. It
  // may still be that of a value which a slow consumer is about to have taken: waits for that.
  void Push(T value) {
    while (!TryPush(std::move(value))) std::this_thread::yield();
  }

  bool TryPop(T& out) {
    std::size_t head = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[head & mask_];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      const auto ahead = static_cast<std::ptrdiff_t>(turn - (head + 1));
      if (ahead < 0) return false;
      if (ahead > 0) {
        head = head_.load(std::memory_order_relaxed);
        continue;
      }
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_relaxed)) {
        out = std::move(cell.value);
        cell.turn.store(head + mask_ + 1, std::memory_order_release);
        return true;
      }
    }
  }

  // For a consumer, before it sleeps. With others at work it may be out of date at once.
  bool Empty() const {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    const std::size_t turn = cells_[head & mask_].turn.load(std::memory_order_acquire);
    return static_cast<std::ptrdiff_t>(turn - (head + 1)) < 0;
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn;
    T value;
  };
  const std::size_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  alignas(kCacheLine) std::atomic<std::size_t> tail_{0};
  alignas(kCacheLine) std::atomic<std::size_t> head_{0};
};

}  // namespace tactus
