// Whatever a file of a plan holds, it is a plan of this fleet or refused with its name; what is
// read is the same after it was written and read again.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "workload/fleet_file.h"
#include "workload/fleet_plan_file.h"

namespace {

// As tests/fuzz_corpus/fleet_plan_fuzz has plans of it.
constexpr const char* kFuzzedFleet = R"(
[[devices]]
name = "server"
kind = "gpu"
site = "rack"
accelerators = 2
streams = 2
memory_mb = 900
server = true
[[devices]]
name = "camera"
kind = "small"
site = "street"
memory_mb = 400
[[links]]
sites = ["rack", "street"]
mbps = 20
loss = 0.01
[[costs]]
model = "detect"
kind = "gpu"
weights_mb = 100
batches = [1, 2]
infer_ms = [4, 6]
peak_mb = [50, 90]
[[costs]]
model = "detect"
kind = "small"
weights_mb = 100
batches = [1]
infer_ms = [30]
[[pipelines]]
name = "p"
slo_ms = 200
source = "camera"
rate_rps = 15
[[pipelines.stages]]
name = "detect"
in_kb = 100
[[pipelines.stages]]
name = "again"
model = "detect"
after = ["detect"]
items = 2.5
)";

const tactus::FleetInput& FuzzedFleet() {
  static const tactus::Expected<tactus::FleetInput> fleet =
      tactus::ParseFleet(kFuzzedFleet, "fleet");
  CHECK(fleet.has_value(), "the fleet of the plans is one");
  return *fleet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = tactus::ParseFleetPlan(text, "fuzz", FuzzedFleet());
  if (!read) {
    CHECK(read.error().message.starts_with("fuzz:"), "an error names its file");
    return 0;
  }
  const std::string written = tactus::FleetPlanJson(read->plan, FuzzedFleet(), read->planner);
  const auto again = tactus::ParseFleetPlan(written, "fuzz", FuzzedFleet());
  CHECK(again && again->plan == read->plan && again->planner == read->planner,
        "what is written is read as it was");
  CHECK(again->doubts.empty(), "what is written is for the fleet as it is");
  return 0;
}
