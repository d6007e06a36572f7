#include "stream/jpeg.h"

#include <memory>

#include <fmt/format.h>
#include <turbojpeg.h>

#include "base/memory_guard.h"

namespace tactus {
namespace {

struct DestroyCodec {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Codec = std::unique_ptr<void, DestroyCodec>;

struct FreeBytes {
  void operator()(unsigned char* bytes) const { tjFree(bytes); }
};

// What `compress` makes, given a codec, the buffer and its size; 0: it went well.
template <class Compress>
Expected<std::string> Compressed(const Compress& compress) {
  const Codec codec(tjInitCompress());
  if (codec == nullptr) return Internal("libturbojpeg does not start");
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int failed = compress(codec.get(), &bytes, &size);
  const std::unique_ptr<unsigned char, FreeBytes> owner(bytes);
  if (failed != 0) {
    return InvalidArgument(
        fmt::format("no JPEG can be made of the frame: {}", tjGetErrorStr2(codec.get())));
  }
  return WithMemory("the frame's JPEG", [&]() -> Expected<std::string> {
    return std::string(reinterpret_cast<const char*>(bytes), size);
  });
}

}  // namespace

Expected<RgbPicture> DecodeRgb(std::string_view jpeg) {
  const Codec codec(tjInitDecompress());
  if (codec == nullptr) return Internal("libturbojpeg does not start");
  const auto* bytes = reinterpret_cast<const unsigned char*>(jpeg.data());
  RgbPicture picture;
  int subsampling = 0;
  int colours = 0;
  const bool headed =
      !jpeg.empty() && tjDecompressHeader3(codec.get(), bytes, jpeg.size(), &picture.width,
                                           &picture.height, &subsampling, &colours) == 0;
  if (!headed || std::int64_t{picture.width} * picture.height > kMostPixels) {
    return InvalidArgument("the frame is no JPEG, or a too large one");
  }
  const Status room = WithMemory("the frame's picture", [&]() -> Status {
    picture.pixels.resize(static_cast<std::size_t>(picture.width) *
                          static_cast<std::size_t>(picture.height) * 3);
    return {};
  });
  if (!room) return std::unexpected(room.error());
  if (tjDecompress2(codec.get(), bytes, jpeg.size(), picture.pixels.data(), picture.width, 0,
                    picture.height, TJPF_RGB, TJFLAG_LIMITSCANS) != 0 &&
      tjGetErrorCode(codec.get()) != TJERR_WARNING) {
    return InvalidArgument(
        fmt::format("the JPEG cannot be decoded: {}", tjGetErrorStr2(codec.get())));
  }
  return picture;
}

Expected<std::string> EncodeJpeg(const RgbPicture& picture) {
  return Compressed([&](void* codec, unsigned char** bytes, unsigned long* size) {
    return tjCompress2(codec, picture.pixels.data(), picture.width, 0, picture.height, TJPF_RGB,
                       bytes, size, TJSAMP_420, kJpegQuality, 0);
  });
}

Expected<std::string> EncodeJpeg(const YuvPlanes& picture) {
  return Compressed([&](void* codec, unsigned char** bytes, unsigned long* size) {
    const unsigned char* planes[3] = {picture.planes[0], picture.planes[1], picture.planes[2]};
    return tjCompressFromYUVPlanes(codec, planes, picture.width, picture.strides, picture.height,
                                   TJSAMP_420, bytes, size, kJpegQuality, 0);
  });
}

}  // namespace tactus
