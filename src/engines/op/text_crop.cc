#include "engines/op/text_crop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "engines/op/rectangle.h"
#include "engines/op/resize.h"

namespace tactus::op {
namespace {

constexpr double kDownwards = 1.5;

double Far(Point a, Point b) { return std::hypot(b.x - a.x, b.y - a.y); }

// A coordinate as the pixel before it and the weight, of 2048, of the one behind.
struct Tap {
  int first = 0;
  int second = 0;
  std::int32_t weight = 0;

  Tap(double at, int size) {
    if (!(at > 0)) at = 0;
    at = std::min(at, size - 1.0);
    first = static_cast<int>(at);
    second = std::min(first + 1, size - 1);
    weight = static_cast<std::int32_t>(std::floor((at - first) * kWeightOne + 0.5));
  }
};

void Sample(const ImageView& image, double x, double y, std::uint8_t* out) {
  const Tap across(x, image.width);
  const Tap down(y, image.height);
  const std::uint8_t* top = image.row(down.first);
  const std::uint8_t* bottom = image.row(down.second);
  const auto left = static_cast<std::size_t>(across.first) * 3;
  const auto right = static_cast<std::size_t>(across.second) * 3;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::int32_t above =
        top[left + c] * (kWeightOne - across.weight) + top[right + c] * across.weight;
    const std::int32_t below =
        bottom[left + c] * (kWeightOne - across.weight) + bottom[right + c] * across.weight;
    const std::int32_t sum = above * (kWeightOne - down.weight) + below * down.weight;
    out[c] = static_cast<std::uint8_t>((sum + (1 << (2 * kWeightBits - 1))) >> (2 * kWeightBits));
  }
}

}  // namespace

TextLines CropText(const ImageView& image, std::span<const float> quads,
                   const TextCropOptions& options) {
  const std::size_t count = std::min(quads.size() / 8, static_cast<std::size_t>(options.most));
  const std::size_t row_bytes = static_cast<std::size_t>(options.width) * 3;
  TextLines lines;
  lines.pixels.resize(count * static_cast<std::size_t>(options.height) * row_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::array<Point, 4> q;
    for (std::size_t k = 0; k < 4; ++k) q[k] = {quads[i * 8 + k * 2], quads[i * 8 + k * 2 + 1]};
    double w = std::max(Far(q[0], q[1]), Far(q[3], q[2]));
    double h = std::max(Far(q[0], q[3]), Far(q[1], q[2]));
    if (h >= kDownwards * w) {
      std::swap(w, h);
      std::ranges::rotate(q, q.begin() + 1);
    }
    const int across = ToWhole(std::ceil(options.height * w / std::max(h, 1e-9)), 1, options.width);
    std::uint8_t* out =
        lines.pixels.data() + i * static_cast<std::size_t>(options.height) * row_bytes;
    for (int y = 0; y < options.height; ++y) {
      const double v = (y + 0.5) / options.height;
      for (int x = 0; x < across; ++x) {
        const double u = (x + 0.5) / across;
        Sample(image, q[0].x + u * (q[1].x - q[0].x) + v * (q[3].x - q[0].x) - 0.5,
               q[0].y + u * (q[1].y - q[0].y) + v * (q[3].y - q[0].y) - 0.5,
               out + static_cast<std::size_t>(y) * row_bytes + static_cast<std::size_t>(x) * 3);
      }
    }
    lines.widths.push_back(across);
  }
  return lines;
}

void TurnUpright(std::span<float> lines, int channels, int height, int width,
                 std::span<const std::int32_t> widths, std::span<const float> directions,
                 double threshold) {
  const std::size_t plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  const std::size_t each = plane * static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (!(directions[i * 2 + 1] > threshold)) continue;
    const std::ptrdiff_t kept = std::clamp(widths[i], 0, width);
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      float* first = lines.data() + i * each + c * plane;
      for (int y = 0; y < height; ++y) {
        std::reverse(first + std::ptrdiff_t{y} * width, first + std::ptrdiff_t{y} * width + kept);
      }
      for (int y = 0; y < height / 2; ++y) {
        float* a = first + std::ptrdiff_t{y} * width;
        float* b = first + std::ptrdiff_t{height - 1 - y} * width;
        std::swap_ranges(a, a + kept, b);
      }
    }
  }
}

}  // namespace tactus::op
