#include "runtime_reading.h"

namespace tactus {

RuntimeReading ReadingOf(const Runtime& runtime) {
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
