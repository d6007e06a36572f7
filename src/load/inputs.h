// What is sent: for each model a number of samples whose bytes lie ready, labelled where they come
// from a labelled data set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/tensor.h"

namespace tactus {

struct PreparedTensor {
  std::string name;
  DataType type = DataType::kFp32;
  Shape shape;  // of one request, batch dimension 1 included
  std::size_t sample_bytes = 0;
  std::shared_ptr<const std::vector<std::byte>> data;  // samples x sample_bytes; may be shared

  std::span<const std::byte> Sample(std::uint32_t i) const {
    return std::span(*data).subspan(std::size_t{i} * sample_bytes, sample_bytes);
  }
};

struct PreparedInputs {
  std::string model;
  std::uint32_t samples = 0;
  std::vector<PreparedTensor> tensors;                      // in the model's order
  std::shared_ptr<const std::vector<std::uint8_t>> labels;  // empty pointer: not labelled
};

// Fashion-MNIST's test images, normalised as the early-exit models were trained.
struct ImageSet {
  std::uint32_t samples = 0;
  Shape image;  // [1, 28, 28]
  std::shared_ptr<const std::vector<std::byte>> fp32;
  std::shared_ptr<const std::vector<std::uint8_t>> labels;
};
Expected<ImageSet> LoadTestImages();

// Where the inputs of a run come from.
struct InputChoice {
  // Labelled images for the models that take one such image; null: random values.
  const ImageSet* images = nullptr;
  // By tensor name: the sizes of dynamic dimensions, without the batch: {"x", {3, 48, 160}}.
  std::map<std::string, Shape> shapes = {};
  // Where neither says: what the model's server names (DescribedModel::sizes).
  std::map<std::string, Shape> sizes = {};
  // By tensor name: a file whose bytes are the tensor in every request.
  std::map<std::string, std::filesystem::path> files = {};
};

// Inputs for `model`: files where `choice` names them, images where the model takes one, else
// random values. A first dimension of -1 is the batch and becomes 1; where a file is longer than
// that, the last dynamic dimension is as long as the file. A file for a BYTES tensor is its one
// element. InvalidArgument where dimensions stay open, and where a file does not fill the shape.
Expected<PreparedInputs> PrepareInputs(const std::string& model, std::span<const TensorSpec> inputs,
                                       const InputChoice& choice, std::uint64_t seed);

// InvalidArgument where `choice` has a file for an input that no model of `prepared` has.
Status CheckUsed(const InputChoice& choice, std::span<const PreparedInputs> prepared);

}  // namespace tactus
