// Whether a call that was made for one model fits another.
#pragma once

#include <algorithm>
#include <span>

#include "core/tensor.h"

namespace tactus {

inline bool SameTensors(std::span<const TensorSpec> a, std::span<const TensorSpec> b) {
  return std::ranges::equal(a, b, [](const TensorSpec& x, const TensorSpec& y) {
    return x.name == y.name && x.type == y.type && x.dims == y.dims && x.optional == y.optional &&
           x.any_shape == y.any_shape;
  });
}

}  // namespace tactus
