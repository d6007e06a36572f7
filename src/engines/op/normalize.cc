#include "engines/op/normalize.h"

#include <algorithm>
#include <cstddef>

namespace tactus::op {
namespace {

using Table = std::array<std::array<float, 256>, 3>;

Table MakeTable(const NormalizeOptions& options) {
  Table table;
  for (std::size_t c = 0; c < 3; ++c) {
    for (int value = 0; value < 256; ++value) {
      table[c][static_cast<std::size_t>(value)] =
          static_cast<float>((value / 255.0 - options.mean[c]) / options.std[c]);
    }
  }
  return table;
}

}  // namespace

void Normalize(const NormalizeOptions& options, std::span<const std::uint8_t> pixels, int count,
               int height, int width, std::span<const std::int32_t> widths, std::span<float> to) {
  const Table table = MakeTable(options);
  const auto across = static_cast<std::size_t>(width);
  const std::size_t plane = static_cast<std::size_t>(height) * across;
  const std::size_t step = options.nhwc ? 3 : 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t kept =
        widths.empty() ? across : static_cast<std::size_t>(std::clamp(widths[i], 0, width));
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint8_t* from = pixels.data() + i * plane * 3 + (options.bgr ? 2 - c : c);
      float* out = to.data() + i * plane * 3 + (options.nhwc ? c : c * plane);
      for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
        for (std::size_t x = 0; x < kept; ++x) {
          out[(y * across + x) * step] = table[c][from[(y * across + x) * 3]];
        }
        for (std::size_t x = kept; x < across; ++x) out[(y * across + x) * step] = 0;
      }
    }
  }
}

}  // namespace tactus::op
