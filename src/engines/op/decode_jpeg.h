// JPEG to RGB pixels, by libturbojpeg: the accurate inverse DCT and smooth chroma, as Pillow and
// OpenCV decode by default. Orientation tags are not heeded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.h"
#include "engines/op/image.h"

namespace tactus::op {

struct DecodedJpeg {
  Image image;
  bool cut = false;  // it lacked the two bytes that end a JPEG, and no part of the picture
};

// `most_pixels` is checked before memory is taken. kInvalidArgument for bytes that are no JPEG, are
// cut off or corrupt, have more pixels than that, or are not grey or three-coloured (CMYK).
Expected<DecodedJpeg> DecodeJpeg(std::span<const std::byte> jpeg, std::int64_t most_pixels);

// A JPEG of a made-up picture, to measure with.
std::vector<std::byte> SampleJpeg(int height, int width);

}  // namespace tactus::op
