// Pictures as JPEGs, and the marks that are drawn on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace tactus {

// Rows of red, green and blue bytes.
struct RgbPicture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // width * height * 3
};

// Y, U and V of full range, with half the columns and rows of colour.
struct YuvPlanes {
  int width = 0;
  int height = 0;
  const std::uint8_t* planes[3] = {};
  int strides[3] = {};  // bytes from a row to the next
};

inline constexpr int kJpegQuality = 85;
// A larger picture is refused, so that a few bytes cannot ask for gigabytes.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

// InvalidArgument where `jpeg` is none or too large.
Expected<RgbPicture> DecodeRgb(std::string_view jpeg);
Expected<std::string> EncodeJpeg(const RgbPicture& picture);
Expected<std::string> EncodeJpeg(const YuvPlanes& picture);

}  // namespace tactus
