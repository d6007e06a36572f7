#include "workload/dataset.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

namespace tactus {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzip>;

// A count beyond this is a corrupt header, not a data set.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 31;
constexpr const char* kInstall = "install the Debian package dataset-fashion-mnist";

struct Idx {
  std::vector<std::uint32_t> dims;
  std::vector<std::uint8_t> bytes;
};

bool ReadAll(gzFile file, void* into, std::uint64_t bytes) {
  auto* out = static_cast<std::uint8_t*>(into);
  while (bytes > 0) {
    const auto chunk = static_cast<unsigned>(bytes < (1U << 20) ? bytes : (1U << 20));
    const int got = gzread(file, out, chunk);
    if (got <= 0) return false;
    out += got;
    bytes -= static_cast<std::uint64_t>(got);
  }
  return true;
}

std::uint32_t BigEndian(const std::uint8_t* b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

// Header: two zero bytes, the element type (8: unsigned byte), the number of dimensions, then each
// dimension as 32 bits, big endian.
Expected<Idx> ReadIdx(const std::filesystem::path& path, std::size_t dims) {
  GzipFile file(gzopen(path.c_str(), "rb"));
  if (!file) return NotFound(fmt::format("{}: cannot open; {}", path.string(), kInstall));
  std::array<std::uint8_t, 4> magic{};
  if (!ReadAll(file.get(), magic.data(), magic.size()) || magic[0] != 0 || magic[1] != 0 ||
      magic[2] != 8 || magic[3] != dims) {
    return InvalidArgument(
        fmt::format("{}: not an IDX file of bytes with {} dimensions", path.string(), dims));
  }
  Idx idx;
  std::uint64_t bytes = 1;
  for (std::size_t i = 0; i < dims; ++i) {
    std::array<std::uint8_t, 4> word{};
    if (!ReadAll(file.get(), word.data(), word.size())) {
      return InvalidArgument(fmt::format("{}: truncated header", path.string()));
    }
    idx.dims.push_back(BigEndian(word.data()));
    bytes *= idx.dims.back();
    if (bytes > kMaxBytes) {
      return InvalidArgument(fmt::format("{}: more than {} bytes", path.string(), kMaxBytes));
    }
  }
  idx.bytes.resize(bytes);
  if (!ReadAll(file.get(), idx.bytes.data(), bytes)) {
    return InvalidArgument(
        fmt::format("{}: truncated, its header promises {} bytes", path.string(), bytes));
  }
  return idx;
}

}  // namespace

Expected<LabelledImages> LoadIdx(const std::filesystem::path& images,
                                 const std::filesystem::path& labels) {
  auto pixels = ReadIdx(images, 3);
  if (!pixels) return std::unexpected(pixels.error());
  auto classes = ReadIdx(labels, 1);
  if (!classes) return std::unexpected(classes.error());
  if (pixels->dims[0] != classes->dims[0]) {
    return InvalidArgument(fmt::format("{} has {} images and {} has {} labels", images.string(),
                                       pixels->dims[0], labels.string(), classes->dims[0]));
  }
  LabelledImages set;
  set.count = static_cast<int>(pixels->dims[0]);
  set.rows = static_cast<int>(pixels->dims[1]);
  set.columns = static_cast<int>(pixels->dims[2]);
  set.pixels = std::move(pixels->bytes);
  set.labels = std::move(classes->bytes);
  return set;
}

Expected<LabelledImages> LoadFashionMnistTest(const std::filesystem::path& folder) {
  return LoadIdx(folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz");
}

std::vector<float> Normalise(const LabelledImages& images, const Normalisation& how) {
  std::array<float, 256> table{};
  for (int i = 0; i < 256; ++i) {
    table[static_cast<std::size_t>(i)] =
        (static_cast<float>(i) / 255.0F - how.mean) / how.deviation;
  }
  std::vector<float> values;
  values.reserve(images.pixels.size());
  for (const std::uint8_t pixel : images.pixels) values.push_back(table[pixel]);
  return values;
}

int ArgMax(std::span<const std::byte> fp32) {
  int best = -1;
  float largest = 0;
  for (std::size_t i = 0; i + sizeof(float) <= fp32.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, fp32.data() + i, sizeof value);
    if (best < 0 || value > largest) {
      best = static_cast<int>(i / sizeof(float));
      largest = value;
    }
  }
  return best;
}

}  // namespace tactus
