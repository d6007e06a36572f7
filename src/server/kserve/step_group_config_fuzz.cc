// What another node may say of steps that are to run here: read, and where that is fine, described
// again, which must come to the same.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/kserve/step_group_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tactus;
  const auto steps = ReadSteps({reinterpret_cast<const char*>(data), size});
  if (!steps) {
    CHECK(!steps.error().message.empty(), "a mistake has a text");
    return 0;
  }
  CHECK(!steps->pipeline.stages.empty(), "there are steps");
  EnsembleDeclaration again = *steps;
  if (again.pipeline.slo <= Duration{}) again.pipeline.slo = Seconds(10);
  const auto described = DescribeSteps(again);
  if (!described) return 0;
  const auto read = ReadSteps(*described);
  CHECK(read.has_value(), "what was described is read");
  CHECK(read->pipeline.stages.size() == steps->pipeline.stages.size(), "with all its steps");
  return 0;
}
