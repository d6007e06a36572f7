// Pictures: rows of RGB pixels, eight bits each, as UINT8 [height, width, 3] without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tactus::op {

// A picture or a rectangle of one.
struct ImageView {
  const std::uint8_t* data = nullptr;  // the first pixel's red
  int height = 0;
  int width = 0;
  std::size_t row_bytes = 0;  // from one row to the next

  const std::uint8_t* row(int y) const { return data + static_cast<std::size_t>(y) * row_bytes; }
  // Lies within this one.
  ImageView Part(int left, int top, int part_width, int part_height) const {
    return {row(top) + static_cast<std::size_t>(left) * 3, part_height, part_width, row_bytes};
  }
};

struct Image {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;

  ImageView view() const {
    return {pixels.data(), height, width, static_cast<std::size_t>(width) * 3};
  }
};

// Where a picture lies in what was made of it: a point (x, y) of the source, in pixels, is at
// ((x - left) * scale_x, (y - top) * scale_y). As a tensor: FP32 [4], in this order.
struct Frame {
  float left = 0;
  float top = 0;
  float scale_x = 1;
  float scale_y = 1;
};

// `value` as a whole number in [least, most]; not-a-number is the least.
inline int ToWhole(double value, int least, int most) {
  if (!(value > least)) return least;
  return value >= most ? most : static_cast<int>(value);
}

}  // namespace tactus::op
