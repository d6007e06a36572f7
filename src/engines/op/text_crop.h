// Turned boxes of text cut out of a picture, made upright and of one height; and lines that lie on
// their heads turned round.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/op/image.h"

namespace tactus::op {

struct TextCropOptions {
  int height = 48;
  int width = 320;  // of the tensor; a longer line is squeezed
  int most = 64;    // boxes; those behind are left out
};

struct TextLines {
  std::vector<std::uint8_t> pixels;  // UINT8 [n, height, width, 3]; black to the right of a line
  std::vector<std::int32_t> widths;  // n: columns that the line takes
};

// `quads`: four corners x y each, clockwise from the top left, in pixels of the picture; sampled as
// parallelograms. A box at least 1.5 times as high as wide is a line that runs downwards, and is
// turned by a quarter to the left.
TextLines CropText(const ImageView& image, std::span<const float> quads,
                   const TextCropOptions& options);

// Turns the first widths[i] columns of line i by half a turn where `directions` [n, 2] (upright,
// upside down) says that it is upside down with more than `threshold`. `lines` is [n, channels,
// height, width].
void TurnUpright(std::span<float> lines, int channels, int height, int width,
                 std::span<const std::int32_t> widths, std::span<const float> directions,
                 double threshold);

}  // namespace tactus::op
