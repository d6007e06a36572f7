// A tensor as it passes from one operator to the next: its bytes are shared, not copied.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace tactus::op {

struct Tensor {
  DataType type = DataType::kUint8;
  Shape shape;
  std::span<const std::byte> bytes;   // dense, row-major; aligned to an element
  std::shared_ptr<const void> owner;  // of `bytes`; null: the caller keeps them

  // T must be the type's C++ equivalent.
  template <class T>
  std::span<const T> As() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

template <class T>
Tensor Own(DataType type, Shape shape, std::vector<T> values) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return {type, std::move(shape), std::as_bytes(std::span(*owner)), owner};
}

}  // namespace tactus::op
