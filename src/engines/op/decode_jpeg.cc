#include "engines/op/decode_jpeg.h"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <turbojpeg.h>

namespace tactus::op {
namespace {

struct DestroyJpeg {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using JpegHandle = std::unique_ptr<void, DestroyJpeg>;

std::unexpected<Error> NoJpeg(std::string_view why) {
  return InvalidArgument(fmt::format("the JPEG cannot be decoded: {}", why));
}

// What the library warns of and decodes rightly all the same.
bool Harmless(std::string_view warning) { return warning.find("extraneous") != warning.npos; }

// Empty where the picture was decoded; else why not.
std::string Decompress(void* handle, std::span<const std::byte> jpeg, Image& image) {
  if (tjDecompress2(handle, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size(),
                    image.pixels.data(), image.width, 0, image.height, TJPF_RGB,
                    TJFLAG_LIMITSCANS) == 0) {
    return {};
  }
  std::string why = tjGetErrorStr2(handle);
  const bool warns = tjGetErrorCode(handle) == TJERR_WARNING;
  return warns && Harmless(why) ? std::string() : why;
}

// Some cameras leave out the two bytes that end a picture. With them it decodes without a
// complaint, and one that lacks more does not.
std::vector<std::byte> WithEnd(std::span<const std::byte> jpeg) {
  std::vector<std::byte> whole(jpeg.begin(), jpeg.end());
  whole.insert(whole.end(), {std::byte{0xff}, std::byte{0xd9}});
  return whole;
}

}  // namespace

Expected<DecodedJpeg> DecodeJpeg(std::span<const std::byte> jpeg, std::int64_t most_pixels) {
  if (jpeg.empty()) return NoJpeg("it is empty");
  const JpegHandle handle(tjInitDecompress());
  if (handle == nullptr) return Internal("libturbojpeg does not start");
  const auto* bytes = reinterpret_cast<const unsigned char*>(jpeg.data());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colours = 0;
  if (tjDecompressHeader3(handle.get(), bytes, jpeg.size(), &width, &height, &subsampling,
                          &colours) != 0) {
    return NoJpeg(tjGetErrorStr2(handle.get()));
  }
  if (width < 1 || height < 1) return NoJpeg("it has no pixels");
  if (std::int64_t{width} * height > most_pixels) {
    return InvalidArgument(fmt::format(
        "the JPEG has {} x {} pixels, more than the {} that decode_jpeg.most_pixels allows", width,
        height, most_pixels));
  }
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
    return NoJpeg("its colours are CMYK; convert it to RGB");
  }
  DecodedJpeg decoded{{height, width, {}}};
  Image& image = decoded.image;
  image.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  const std::string why = Decompress(handle.get(), jpeg, image);
  if (why.empty()) return decoded;
  const bool ends_early = why.find("Premature end of JPEG") != why.npos;
  decoded.cut = ends_early && Decompress(handle.get(), WithEnd(jpeg), image).empty();
  if (decoded.cut) return decoded;
  return NoJpeg(why);
}

std::vector<std::byte> SampleJpeg(int height, int width) {
  std::vector<unsigned char> pixels;
  pixels.reserve(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        pixels.push_back(static_cast<unsigned char>((x * (c + 1) + y * 2 + (x * y >> 4)) & 0xff));
      }
    }
  }
  const JpegHandle handle(tjInitCompress());
  unsigned char* out = nullptr;
  unsigned long size = 0;
  std::vector<std::byte> jpeg;
  if (handle != nullptr && tjCompress2(handle.get(), pixels.data(), width, 0, height, TJPF_RGB,
                                       &out, &size, TJSAMP_420, 85, 0) == 0) {
    jpeg.resize(size);
    std::memcpy(jpeg.data(), out, size);
  }
  tjFree(out);
  return jpeg;
}

}  // namespace tactus::op
