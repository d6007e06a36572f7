// Any bytes as a table of pairs: read or refused, never a crash; what is read can be fitted, and
// what is fitted is finite.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/devices/interference_pairs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto pairs = tactus::ParseInterferencePairs(text, "fuzz.csv");
  if (!pairs || pairs->samples.size() < 5) return 0;
  const auto& samples = pairs->samples;
  for (const auto& sample : samples) {
    if (sample.factor > 1e100 || sample.factor < 1e-100) return 0;  // squares overflow
  }
  const auto split = tactus::SplitByPair(samples, 0.3, size);
  if (split.fitted.size() + split.held_out.size() != samples.size()) std::abort();
  if (!pairs->held_out.empty() && pairs->held_out.size() != samples.size()) std::abort();
  const auto model = tactus::FitInterference(samples);
  if (!model) std::abort();
  for (const double c : model->c) {
    if (!std::isfinite(c)) std::abort();
  }
  (void)tactus::RelativeErrors(*model, split.held_out);
  return 0;
}
