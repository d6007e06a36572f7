// Boxes cut out of a picture, each resized to one size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/op/image.h"

namespace tactus::op {

struct CropOptions {
  int height = 224;
  int width = 224;
  // The part of the box's width and height that is added on each side.
  double margin = 0;
  // Whether the box grows about its centre to the target's aspect. The edge of the picture may
  // still cut it.
  bool extend = false;
  int most = 64;  // boxes; those behind are left out
};

struct Crops {
  std::vector<std::uint8_t> pixels;  // UINT8 [n, height, width, 3]
  std::vector<Frame> frames;         // n
};

// `boxes` are x1 y1 x2 y2 in pixels of the picture. A box that lies outside of the picture becomes
// the nearest pixel.
Crops Crop(const ImageView& image, std::span<const float> boxes, const CropOptions& options);

}  // namespace tactus::op
