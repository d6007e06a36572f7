#include "service/infer_call.h"

namespace tactus {

void AppendPart(OutputTensor& tensor, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (!tensor.parts.empty()) {
    std::span<const std::byte>& last = tensor.parts.back();
    if (last.data() + last.size() == bytes.data()) {
      last = {last.data(), last.size() + bytes.size()};
      return;
    }
  }
  tensor.parts.push_back(bytes);
}

std::size_t InputBytes(const InferCall& call) {
  std::size_t bytes = 0;
  for (const InputTensor& input : call.inputs) bytes += input.data.size();
  return bytes;
}

std::size_t OutputBytes(const InferReply& reply) {
  std::size_t bytes = 0;
  for (const OutputTensor& output : reply.outputs) {
    for (const auto part : output.parts) bytes += part.size();
  }
  return bytes;
}

}  // namespace tactus
