// A vector whose storage is taken once: push_back never allocates, so spans into it stay good.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "base/check.h"

namespace tactus {

template <class T>
class FixedVector {
 public:
  FixedVector() = default;
  explicit FixedVector(std::size_t capacity)
      : capacity_(capacity), items_(std::make_unique<T[]>(capacity)) {}

  void push_back(const T& value) {
    CHECK(size_ < capacity_, "FixedVector is full");
    items_[size_++] = value;
  }
  // Moves the last item into the hole: the order is not kept.
  void SwapErase(std::size_t i) {
    CHECK(i < size_, "index past the end");
    items_[i] = items_[--size_];
  }
  // Moves what follows into the hole.
  void Erase(std::size_t i) {
    CHECK(i < size_, "index past the end");
    std::move(begin() + i + 1, end(), begin() + i);
    --size_;
  }
  void clear() { size_ = 0; }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == capacity_; }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  T* begin() { return items_.get(); }
  T* end() { return items_.get() + size_; }
  const T* begin() const { return items_.get(); }
  const T* end() const { return items_.get() + size_; }
  operator std::span<const T>() const { return {items_.get(), size_}; }

 private:
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<T[]> items_;
};

}  // namespace tactus
