// What `tactus measure` sends: labelled test images where a model takes them, else noise.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "service/inference_service.h"

namespace tactus {

class MeasuredInputs {
 public:
  // Models that take one FP32 tensor of 1 x 28 x 28 get Fashion-MNIST's test images, if Debian's
  // package of them is installed.
  static Expected<MeasuredInputs> Make(const ModelSpec& spec, std::uint64_t seed);

  // The inputs of the k-th request and what keeps their bytes.
  std::vector<InputTensor> Row(std::uint64_t k) const;
  std::shared_ptr<const void> keepalive() const { return bytes_; }
  // 1 or 0: the largest value of the first output is that of the k-th request's label, or not; -1:
  // nobody knows.
  std::int8_t Correct(std::uint64_t k, const InferReply& reply) const;

 private:
  struct Input {
    std::string name;
    DataType type;
    Shape shape;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  std::vector<Input> inputs_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;  // rows one behind the other
  std::size_t row_bytes_ = 0;
  std::size_t rows_ = 1;
  std::vector<std::uint8_t> labels_;  // of each row; empty: none
};

}  // namespace tactus
