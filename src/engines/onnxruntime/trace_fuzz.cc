// Any bytes as ONNX Runtime's trace: parsed or refused, never a crash; what is parsed is finite.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engines/onnxruntime/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto works =
      tactus::ParseTrace(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!works) return 0;
  for (const tactus::BatchWork& work : *works) {
    for (const tactus::KernelWork& kernel : work) {
      const double sum = kernel.operations + kernel.weight_bytes + kernel.activation_bytes;
      if (!std::isfinite(sum) || sum < 0) std::abort();
    }
  }
  return 0;
}
