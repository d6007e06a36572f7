// Any bytes as a JPEG, and what comes of it through the operators of a pipeline's first step.
#include <cstdint>
#include <span>

#include "base/check.h"
#include "engines/op/decode_jpeg.h"
#include "engines/op/resize.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMostPixels = 1 << 18;
  const auto decoded = tactus::op::DecodeJpeg(std::as_bytes(std::span(data, size)), kMostPixels);
  if (!decoded) return 0;
  const tactus::op::Image& image = decoded->image;
  CHECK(std::int64_t{image.height} * image.width <= kMostPixels, "the picture is bounded");
  const auto boxed = tactus::op::Letterbox(image.view(), 32, 48, 0);
  CHECK(boxed.image.pixels.size() == 32 * 48 * 3, "a picture of the size that was asked for");
  return 0;
}
