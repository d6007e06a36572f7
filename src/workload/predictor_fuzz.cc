// Any bytes as what a policy has learnt: parsed or refused, never a crash; and what is parsed is
// the same after it was written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "workload/predictor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto predictor = tactus::ParsePredictor(text, "fuzz.json");
  if (!predictor) return 0;
  // What was accepted fits itself.
  if (!tactus::CheckPredictor(*predictor, "fuzz.json", *predictor)) std::abort();
  const auto again = tactus::ParsePredictor(tactus::PredictorText(*predictor), "fuzz.json");
  if (!again || *again != *predictor) std::abort();
  return 0;
}
