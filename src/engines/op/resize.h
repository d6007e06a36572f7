// Resizing by linear interpolation between the four nearest pixels, in whole numbers: the same
// bytes on every machine. Centres of pixels lie at halves and weights are multiples of 1/2048, as
// in OpenCV's INTER_LINEAR, from which a byte may differ by one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/op/image.h"

namespace tactus::op {

inline constexpr int kWeightBits = 11;
inline constexpr int kWeightOne = 1 << kWeightBits;

// Writes `height` rows of `width` RGB pixels to `to`, `row_bytes` apart. `from` has a pixel at
// least.
void Resize(const ImageView& from, int height, int width, std::uint8_t* to, std::size_t row_bytes);
Image Resize(const ImageView& from, int height, int width);

// The frame of Resize to `height` x `width`.
Frame ResizeFrame(const ImageView& from, int height, int width);

struct Letterboxed {
  Image image;
  Frame frame;
};
// As large as fits with its aspect kept, in the middle; the rest is `fill` in all colours.
Letterboxed Letterbox(const ImageView& from, int height, int width, std::uint8_t fill);

}  // namespace tactus::op
