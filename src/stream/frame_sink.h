// Where frames go: a model or pipeline that takes a JPEG, of this server or of another.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/tensor.h"
#include "stream/frame.h"

namespace tactus {

struct AnswerTensor {
  std::string name;
  DataType type = DataType::kFp32;
  Shape shape;
  std::string bytes;  // dense, row-major, little endian; BYTES: each with its 32-bit length before
};

struct FrameAnswer {
  FrameEnd end = FrameEnd::kFailed;  // kServed, kRefused, kTooLate, kStopped or kFailed
  std::string error;                 // where it is not kServed
  bool emulated = false;             // the server says that the outputs are made up
  std::vector<AnswerTensor> outputs;
};

// Called exactly once, on a thread of the sink's, or inside Send. Must be quick.
using OnFrameAnswer = std::function<void(FrameAnswer&&)>;
using JpegBytes = std::shared_ptr<const std::string>;

// Thread-safe.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // What the model promises, or zero where it does not say; an error where there is no such model,
  // or it takes no JPEG. May block for seconds.
  virtual Expected<Duration> Promise() = 0;
  // `left` > 0: until the frame's deadline.
  virtual void Send(JpegBytes jpeg, Duration left, OnFrameAnswer done) = 0;
  // Nobody waits any more for what was sent: each is still answered, soon, with kStopped or as it
  // ended. Nothing is sent after it.
  virtual void GiveUp() = 0;
};

// How the one input of a model takes a JPEG: as UINT8 of its length, or as one BYTES.
struct JpegInput {
  std::string name;
  DataType type = DataType::kUint8;
  bool batched = false;  // the first dimension is the batch

  Shape ShapeOf(std::size_t bytes) const;
  // What goes before the JPEG in the tensor's data.
  std::string Prefix(std::size_t bytes) const;
};
// InvalidArgument where the inputs are not one that takes a JPEG. `batched`: dims begin with the
// batch.
Expected<JpegInput> JpegInputOf(std::string_view model, const std::vector<TensorSpec>& inputs,
                                bool batched);

}  // namespace tactus
