// Labelled images for measuring accuracy from answers: IDX files (the format of MNIST and
// Fashion-MNIST), plain or compressed with gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/expected.h"

namespace tactus {

struct LabelledImages {
  int count = 0;
  int rows = 0;
  int columns = 0;
  std::vector<std::uint8_t> pixels;  // count x rows x columns
  std::vector<std::uint8_t> labels;  // count

  std::size_t pixels_per_image() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
};

// An absent, truncated or mismatched file is an error that names the file and the remedy.
Expected<LabelledImages> LoadIdx(const std::filesystem::path& images,
                                 const std::filesystem::path& labels);

// Where Debian's package dataset-fashion-mnist puts its files.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

// The 10,000 test images; no training sees them.
Expected<LabelledImages> LoadFashionMnistTest(
    const std::filesystem::path& folder = kFashionMnistFolder);

// What the early-exit models were trained on: (pixel / 255 - mean) / deviation.
struct Normalisation {
  float mean = 0.2860F;
  float deviation = 0.3530F;
};

// One float a pixel, in the order of `images.pixels`.
std::vector<float> Normalise(const LabelledImages& images, const Normalisation& how = {});

// Index of the largest value, the first of equals; -1 for none. Data may be unaligned.
int ArgMax(std::span<const std::byte> fp32);

}  // namespace tactus
