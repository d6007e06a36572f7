// The classes with the highest scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tactus::op {

struct TopClasses {
  std::vector<std::int32_t> classes;  // [n, k], the best first; of equals the lower number
  std::vector<float> scores;          // [n, k]
};

// `scores` is FP32 [n, classes]; k is at most `classes`.
TopClasses TopK(std::span<const float> scores, std::size_t classes, std::size_t k);

}  // namespace tactus::op
