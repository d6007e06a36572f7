#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"

namespace tactus {

RuntimeReading Read(const Runtime& runtime) {
  RuntimeReading reading{.pending = runtime.pending(),
                         .calls = runtime.calls(),
                         .uptime = runtime.uptime(),
                         .lanes = runtime.lane_loads(),
                         .models = runtime.Index(),
                         .statistics = {},
                         .advice = {},
                         .layout = runtime.layout(),
                         .planning = {}};
  if (auto statistics = runtime.Statistics("", -1)) reading.statistics = std::move(*statistics);
  return reading;
}

}  // namespace tactus
