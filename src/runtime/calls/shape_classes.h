// Small numbers for shapes: requests of one model share a batch only if their class is the same.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "core/tensor.h"

namespace tactus {

// Thread-safe. Bounded: when more shapes than `capacity` have come, the table starts over with
// fresh numbers, so that a waiting request may miss a batch with its like but never joins an unlike
// one.
class ShapeClasses {
 public:
  explicit ShapeClasses(std::size_t capacity = 1024) : capacity_(capacity) {}

  // `row_shapes`: the shape of one row of each input, in order.
  std::uint32_t Find(std::span<const Shape> row_shapes) {
    Shape key;
    for (const Shape& shape : row_shapes) {
      key.push_back(static_cast<std::int64_t>(shape.size()));
      key.insert(key.end(), shape.begin(), shape.end());
    }
    const std::lock_guard lock(mutex_);
    if (const auto it = classes_.find(key); it != classes_.end()) return it->second;
    if (classes_.size() >= capacity_) classes_.clear();
    return classes_[std::move(key)] = next_++;
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::map<Shape, std::uint32_t> classes_;
  std::uint32_t next_ = 1;  // 0 is the class of models whose shapes are all fixed
};

}  // namespace tactus
