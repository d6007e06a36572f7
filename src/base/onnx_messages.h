// Where the messages of onnx.proto hold tensors and operators.
#pragma once

#include <cstdint>

namespace tactus {

enum class OnnxMessage : std::uint8_t {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kFunction,
  kSparse,
  kTensor,
  kEntry,  // of a tensor's external_data: a key and a value
  kOther,
};

// The message in that field; kOther: none that matters.
constexpr OnnxMessage OnnxChild(OnnxMessage of, std::uint64_t field) {
  using enum OnnxMessage;
  switch (of) {
    case kModel:
      return field == 7 ? kGraph : field == 25 ? kFunction : kOther;
    case kGraph:
      return field == 1 ? kNode : field == 5 ? kTensor : field == 15 ? kSparse : kOther;
    case kNode:
      return field == 5 ? kAttribute : kOther;
    case kAttribute:
      return field == 5 || field == 10    ? kTensor
             : field == 6 || field == 11  ? kGraph
             : field == 22 || field == 23 ? kSparse
                                          : kOther;
    case kFunction:
      return field == 7 ? kNode : field == 11 ? kAttribute : kOther;
    case kSparse:
      return field == 1 || field == 2 ? kTensor : kOther;
    case kTensor:
      return field == 13 ? kEntry : kOther;
    case kEntry:
    case kOther:
      return kOther;
  }
  return kOther;
}

// Messages in messages; protobuf itself reads no more.
inline constexpr int kDeepestOnnx = 100;

}  // namespace tactus
