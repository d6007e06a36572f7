#include "engines/op/jpegs.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <turbojpeg.h>

#include "engines/op/decode_jpeg.h"
#include "engines/op/samples.h"

namespace tactus::op {
namespace {

constexpr int kMostSide = 4096;
constexpr int kMostJpegs = 1024;

struct DestroyCodec {
  void operator()(void* codec) const { tjDestroy(codec); }
};
using Codec = std::unique_ptr<void, DestroyCodec>;

// As STRING has it: the length in four bytes, little-endian, then the bytes.
void AppendString(std::vector<std::byte>& to, const unsigned char* bytes, std::size_t size) {
  const auto length = static_cast<std::uint32_t>(size);
  const std::size_t at = to.size();
  to.resize(at + sizeof length + size);
  std::memcpy(to.data() + at, &length, sizeof length);
  std::memcpy(to.data() + at + sizeof length, bytes, size);
}

Expected<Tensor> Encode(const Tensor& pictures, int quality) {
  const std::int64_t n = pictures.shape[0];
  const auto height = static_cast<int>(pictures.shape[1]);
  const auto width = static_cast<int>(pictures.shape[2]);
  if (n > 0 && (height < 1 || width < 1 || height > kMostSide || width > kMostSide)) {
    return InvalidArgument(fmt::format("pictures of {} cannot be JPEGs", ToString(pictures.shape)));
  }
  const Codec codec(tjInitCompress());
  if (codec == nullptr) return Internal("libturbojpeg does not start");
  const std::size_t each = n > 0 ? pictures.bytes.size() / static_cast<std::size_t>(n) : 0;
  std::vector<std::byte> jpegs;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const auto* pixels = reinterpret_cast<const unsigned char*>(pictures.bytes.data() + i * each);
    unsigned char* out = nullptr;
    unsigned long size = 0;
    const int failed = tjCompress2(codec.get(), pixels, width, 0, height, TJPF_RGB, &out, &size,
                                   TJSAMP_420, quality, 0);
    if (failed == 0) AppendString(jpegs, out, size);
    tjFree(out);
    if (failed != 0) return Internal(fmt::format("libturbojpeg: {}", tjGetErrorStr2(codec.get())));
  }
  return Own(DataType::kBytes, {n, 1}, std::move(jpegs));
}

Expected<Tensor> Decode(const Tensor& jpegs, int height, int width, int most) {
  const std::int64_t n = jpegs.shape[0];
  if (n > most) return InvalidArgument(fmt::format("{} JPEGs are more than {}", n, most));
  std::vector<std::uint8_t> pixels;
  std::uint32_t cut = 0;
  std::span<const std::byte> rest = jpegs.bytes;
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t length = 0;
    if (rest.size() < sizeof length) return InvalidArgument(fmt::format("JPEG {} is missing", i));
    std::memcpy(&length, rest.data(), sizeof length);
    rest = rest.subspan(sizeof length);
    if (rest.size() < length) return InvalidArgument(fmt::format("JPEG {} is cut off", i));
    const auto decoded = DecodeJpeg(rest.first(length), std::int64_t{height} * width);
    if (!decoded) return std::unexpected(decoded.error());
    const Image& image = decoded->image;
    if (image.height != height || image.width != width) {
      return InvalidArgument(fmt::format("JPEG {} has {} x {} pixels, not {} x {}", i, image.width,
                                         image.height, width, height));
    }
    pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
    cut += decoded->cut ? 1 : 0;
    rest = rest.subspan(length);
  }
  Tensor pictures = Own(DataType::kUint8, {n, height, width, 3}, std::move(pixels));
  pictures.cut_jpegs = cut;
  return pictures;
}

Expected<std::vector<Tensor>> One(Expected<Tensor> made) {
  if (!made) return std::unexpected(std::move(made.error()));
  return std::vector{*std::move(made)};
}

}  // namespace

Operator MakeEncodeJpegs(Arguments& arguments) {
  const int quality = arguments.Whole("quality", 85, 1, 100);
  Operator op;
  op.inputs = {{"crops", DataType::kUint8, {-1, -1, -1, 3}}};
  op.outputs = {{"jpegs", DataType::kBytes, {-1, 1}}};
  op.run = [quality](std::span<const Tensor> in) { return One(Encode(in[0], quality)); };
  op.sample = [] { return std::vector{SamplePictures(kSampleObjects, 193, 129)}; };
  return op;
}

Operator MakeDecodeJpegs(Arguments& arguments) {
  const int height = arguments.Needed("height", 1, kMostSide);
  const int width = arguments.Needed("width", 1, kMostSide);
  const int most = arguments.Whole("most", 64, 1, kMostJpegs);
  Operator op;
  op.inputs = {{"jpegs", DataType::kBytes, {-1, 1}}};
  op.outputs = {{"pictures", DataType::kUint8, {-1, height, width, 3}}};
  op.run = [height, width, most](std::span<const Tensor> in) {
    return One(Decode(in[0], height, width, most));
  };
  op.sample = [height, width] {
    const std::vector<std::byte> jpeg = SampleJpeg(height, width);
    std::vector<std::byte> one;
    AppendString(one, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    return std::vector{Own(DataType::kBytes, {1, 1}, std::move(one))};
  };
  return op;
}

}  // namespace tactus::op
