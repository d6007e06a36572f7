#include "engines/op/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace tactus::op {

TopClasses TopK(std::span<const float> scores, std::size_t classes, std::size_t k) {
  TopClasses top;
  std::vector<std::int32_t> order(classes);
  for (std::size_t first = 0; first + classes <= scores.size(); first += classes) {
    const float* row = scores.data() + first;
    // Not-a-number is below all: an order must be one.
    const auto value = [row](std::int32_t i) { return std::isnan(row[i]) ? -INFINITY : row[i]; };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                      [&](std::int32_t a, std::int32_t b) {
                        return value(a) > value(b) || (value(a) == value(b) && a < b);
                      });
    for (std::size_t i = 0; i < k; ++i) {
      top.classes.push_back(order[i]);
      top.scores.push_back(row[order[i]]);
    }
  }
  return top;
}

}  // namespace tactus::op
