#include "engines/op/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tactus::op {
namespace {

// Where each pixel of the target takes its colour from: two neighbours and the second's weight.
struct Neighbours {
  std::vector<int> first, second, weight;

  Neighbours(int size, int target) {
    for (int i = 0; i < target; ++i) {
      const double scale = static_cast<double>(size) / target;
      const double at = std::clamp((i + 0.5) * scale - 0.5, 0.0, size - 1.0);
      const int left = static_cast<int>(at);
      first.push_back(left);
      second.push_back(std::min(left + 1, size - 1));
      weight.push_back(static_cast<int>(std::floor((at - left) * kWeightOne + 0.5)));
    }
  }
};

void ResizeRow(const std::uint8_t* row, const Neighbours& across, std::vector<std::int32_t>& out) {
  for (std::size_t x = 0; x < across.first.size(); ++x) {
    const std::uint8_t* a = row + static_cast<std::size_t>(across.first[x]) * 3;
    const std::uint8_t* b = row + static_cast<std::size_t>(across.second[x]) * 3;
    const std::int32_t w = across.weight[x];
    for (std::size_t c = 0; c < 3; ++c) out[x * 3 + c] = a[c] * (kWeightOne - w) + b[c] * w;
  }
}

}  // namespace

void Resize(const ImageView& from, int height, int width, std::uint8_t* to, std::size_t row_bytes) {
  const Neighbours across(from.width, width);
  const Neighbours down(from.height, height);
  const std::size_t count = static_cast<std::size_t>(width) * 3;
  std::vector<std::int32_t> above(count), below(count);
  int have_above = -1;
  int have_below = -1;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    const int first = down.first[y];
    const int second = down.second[y];
    if (first != have_above) {
      if (first == have_below) {
        std::swap(above, below);
        std::swap(have_above, have_below);
      } else {
        ResizeRow(from.row(first), across, above);
      }
      have_above = first;
    }
    if (second != have_below) ResizeRow(from.row(second), across, below);
    have_below = second;
    // At most 255 * 2^22: fits.
    const std::int32_t w = down.weight[y];
    std::uint8_t* out = to + y * row_bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t sum = above[i] * (kWeightOne - w) + below[i] * w;
      out[i] = static_cast<std::uint8_t>((sum + (1 << (2 * kWeightBits - 1))) >> (2 * kWeightBits));
    }
  }
}

Image Resize(const ImageView& from, int height, int width) {
  Image image{height, width, {}};
  const std::size_t row_bytes = static_cast<std::size_t>(width) * 3;
  image.pixels.resize(static_cast<std::size_t>(height) * row_bytes);
  Resize(from, height, width, image.pixels.data(), row_bytes);
  return image;
}

Frame ResizeFrame(const ImageView& from, int height, int width) {
  return {0, 0, static_cast<float>(static_cast<double>(width) / from.width),
          static_cast<float>(static_cast<double>(height) / from.height)};
}

Letterboxed Letterbox(const ImageView& from, int height, int width, std::uint8_t fill) {
  const double scale =
      std::min(static_cast<double>(width) / from.width, static_cast<double>(height) / from.height);
  const int w = std::max(1, static_cast<int>(std::floor(from.width * scale + 0.5)));
  const int h = std::max(1, static_cast<int>(std::floor(from.height * scale + 0.5)));
  const int left = (width - w) / 2;
  const int top = (height - h) / 2;
  Letterboxed boxed{{height, width, {}}, {}};
  const std::size_t row_bytes = static_cast<std::size_t>(width) * 3;
  boxed.image.pixels.assign(static_cast<std::size_t>(height) * row_bytes, fill);
  Resize(from, h, w,
         boxed.image.pixels.data() + static_cast<std::size_t>(top) * row_bytes +
             static_cast<std::size_t>(left) * 3,
         row_bytes);
  const double scale_x = static_cast<double>(w) / from.width;
  const double scale_y = static_cast<double>(h) / from.height;
  boxed.frame = {static_cast<float>(-left / scale_x), static_cast<float>(-top / scale_y),
                 static_cast<float>(scale_x), static_cast<float>(scale_y)};
  return boxed;
}

}  // namespace tactus::op
