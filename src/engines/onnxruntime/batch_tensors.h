// Rows of requests to ONNX Runtime's tensors and back, with as few copies as there can be.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "engines/onnxruntime/library.h"

namespace tactus {

// The input tensors of one batch. One row, or rows that lie one behind the other in memory, are
// used where they lie; other rows are copied once, into buffers that are kept for the next batch.
class BatchInputs {
 public:
  // `batches`: the first dimension is the batch. The specs and rows must outlive the run.
  // kInvalidArgument if rows differ in shape or in what they leave out, or a row's bytes are not
  // what its shape says.
  Status Gather(std::span<const TensorSpec> specs, bool batches, std::span<const RowInputs> rows);

  // Bytes of the buffers. They are let go of where 64 batches in a row needed far less.
  std::size_t kept() const;

  // The tensors of the inputs that the rows have, and their names.
  std::span<const Ort::Value> values() const { return values_; }
  const char* const* names() const { return names_.data(); }

 private:
  Status GatherNumbers(const TensorSpec& spec, std::size_t i, std::span<const RowInputs> rows);
  void LookAtBuffers();
  Status GatherStrings(const TensorSpec& spec, std::size_t i, std::span<const RowInputs> rows);

  std::vector<Ort::Value> values_;
  std::vector<const char*> names_;
  std::vector<std::vector<std::byte>> buffers_;
  std::size_t copied_ = 0;  // bytes of this batch
  std::size_t most_ = 0;    // of a batch, since buffers were last looked at
  int looked_ = 0;          // batches ago
  Shape shape_;             // of the tensor that is being gathered
};

// Whether each output of a batch has one row for each of its `rows`.
bool HaveRows(std::span<const Ort::Value> values, std::size_t rows);

// The rows of a batch as spans into ONNX Runtime's own output, which the result keeps alive;
// `graph` too, whose session allocated it. BYTES are encoded anew, and what lies in memory of
// `inputs` is copied. `specs` are the outputs', in the order of `values`, whose shapes become those
// that clients receive.
Expected<std::shared_ptr<const BatchOutput>> Scatter(std::vector<Ort::Value>&& values,
                                                     std::span<const Ort::Value> inputs,
                                                     std::span<const TensorSpec> specs,
                                                     bool batches, std::size_t rows,
                                                     std::shared_ptr<const void> graph);

}  // namespace tactus
