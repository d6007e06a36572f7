// A tensor as it passes from one operator to the next: its bytes are shared, not copied.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // JPEGs that it was decoded from and that lacked the bytes that end them.
  std::uint32_t cut_jpegs = 0;

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
