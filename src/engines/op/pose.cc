#include "engines/op/pose.h"

#include <cmath>
#include <cstddef>

namespace tactus::op {

std::vector<float> DecodePose(const PoseMaps& maps, std::span<const Frame> frames, int stride) {
  const auto parts = static_cast<std::size_t>(maps.parts);
  const auto width = static_cast<std::size_t>(maps.width);
  const std::size_t cells = static_cast<std::size_t>(maps.height) * width;
  std::vector<float> points;
  points.reserve(static_cast<std::size_t>(maps.count) * parts * 3);
  for (std::size_t i = 0; i < static_cast<std::size_t>(maps.count); ++i) {
    const float* heat = maps.heat.data() + i * cells * parts;
    const float* offsets = maps.offsets.data() + i * cells * parts * 2;
    const Frame& frame = frames[i];
    for (std::size_t part = 0; part < parts; ++part) {
      std::size_t best = 0;
      for (std::size_t cell = 1; cell < cells; ++cell) {
        if (heat[cell * parts + part] > heat[best * parts + part]) best = cell;
      }
      const float* offset = offsets + best * parts * 2;
      const double y = static_cast<double>(best / width) * stride + double{offset[part]};
      const double x = static_cast<double>(best % width) * stride + double{offset[parts + part]};
      points.push_back(static_cast<float>(x / double{frame.scale_x} + double{frame.left}));
      points.push_back(static_cast<float>(y / double{frame.scale_y} + double{frame.top}));
      points.push_back(static_cast<float>(1 / (1 + std::exp(-double{heat[best * parts + part]}))));
    }
  }
  return points;
}

}  // namespace tactus::op
