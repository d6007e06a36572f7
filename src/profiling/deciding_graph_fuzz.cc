// Any bytes as an ONNX file: its operators are walked through, never a crash, never without end.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "profiling/deciding_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream onnx(std::string(reinterpret_cast<const char*>(data), size));
  tactus::NamesDeciding(onnx, size);
  return 0;
}
