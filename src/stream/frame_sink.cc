#include "stream/frame_sink.h"

#include <fmt/format.h>

namespace tactus {

Shape JpegInput::ShapeOf(std::size_t bytes) const {
  Shape shape;
  if (batched) shape.push_back(1);
  shape.push_back(type == DataType::kUint8 ? static_cast<std::int64_t>(bytes) : 1);
  return shape;
}

std::string JpegInput::Prefix(std::size_t bytes) const {
  std::string prefix;
  if (type != DataType::kBytes) return prefix;
  for (int shift = 0; shift < 32; shift += 8) {
    prefix += static_cast<char>(static_cast<std::uint32_t>(bytes) >> shift & 0xFF);
  }
  return prefix;
}

Expected<JpegInput> JpegInputOf(std::string_view model, const std::vector<TensorSpec>& inputs,
                                bool batched) {
  if (inputs.size() == 1) {
    const TensorSpec& only = inputs.front();
    const std::size_t first = batched ? 1 : 0;
    const bool one = only.dims.size() == first + 1;
    const std::int64_t length = one ? only.dims[first] : 0;
    if (only.type == DataType::kUint8 && length == -1)
      return JpegInput{only.name, only.type, batched};
    if (only.type == DataType::kBytes && (length == -1 || length == 1)) {
      return JpegInput{only.name, only.type, batched};
    }
  }
  return InvalidArgument(
      fmt::format("model '{}' takes no JPEG: a stream needs one input, UINT8 with dims [ -1 ] or "
                  "BYTES with dims [ 1 ]; see docs/reference/streams.md",
                  model));
}

}  // namespace tactus
