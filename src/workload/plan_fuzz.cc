// Any bytes as a plan: parsed or refused, never a crash; what is parsed is the same after it was
// written and read again, and is fitted to two models on two devices or refused.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "workload/plan_file.h"

namespace {

tactus::ProfileTable Profile() {
  tactus::ProfileTable::ModelRows rows{.exits = 1, .max_batch = 2};
  for (const int ms : {8, 12, 4, 6}) rows.latency.push_back(tactus::Millis(ms));
  return {2, std::vector(2, rows)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = tactus::ParsePlan(text, "fuzz.json");
  if (!plan) return 0;
  const std::string written = tactus::PlanText(*plan);
  const auto again = tactus::ParsePlan(written, "fuzz.json");
  if (!again || tactus::PlanText(*again) != written) std::abort();
  const tactus::ProfileTable profile = Profile();
  const tactus::PlanInput input{.models = {{.name = "a", .slo = tactus::Millis(30)},
                                           {.name = "b", .slo = tactus::Millis(30)}},
                                .profile = &profile,
                                .shares = {0.5, 1},
                                .devices = 2,
                                .device = {.memory_mb = 100}};
  const auto fitted = tactus::FitPlan(*plan, "fuzz.json", input);
  if (fitted && !tactus::Validate(*fitted, input)) std::abort();
  return 0;
}
