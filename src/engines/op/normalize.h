// Bytes of pictures to the numbers that a network takes: (byte / 255 - mean) / std.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tactus::op {

struct NormalizeOptions {
  // In the order of the tensor's channels, after `bgr`.
  std::array<double, 3> mean{0, 0, 0};
  std::array<double, 3> std{1, 1, 1};
  bool bgr = false;   // blue first: the pictures themselves have red first
  bool nhwc = false;  // channels last
};

// `count` pictures of `height` x `width` at `pixels` to `to`, as many numbers. Where `widths` is
// not empty, columns from widths[i] on are 0 in picture i.
void Normalize(const NormalizeOptions& options, std::span<const std::uint8_t> pixels, int count,
               int height, int width, std::span<const std::int32_t> widths, std::span<float> to);

}  // namespace tactus::op
