// Any bytes as a graph with weights beside it: walked, put together or refused, never a crash; what
// is put together names no file any more.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engines/onnxruntime/inlined_weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<tactus::WeightsFile> files{{"weights.bin", std::string(64, 'w')}};
  const std::string_view graph(reinterpret_cast<const char*>(data), size);
  const auto whole = tactus::WithWeights(graph, files);
  // Nothing is left to be put in, so a second time changes nothing.
  if (whole && tactus::WithWeights(*whole, {}) != whole) std::abort();
  return 0;
}
