#include "runtime_reading.h"

namespace tactus {

RuntimeReading ReadingOf(const Runtime& runtime, const InferenceService& service) {
  RuntimeReading reading{.pending = runtime.pending(),
                         .calls = runtime.calls(),
                         .uptime = runtime.uptime(),
                         .lanes = runtime.lane_loads(),
                         .models = service.Index(),
                         .statistics = {},
                         .advice = {},
                         .layout = runtime.layout(),
                         .planning = {}};
  if (auto statistics = service.Statistics("", -1)) reading.statistics = std::move(*statistics);
  return reading;
}

}  // namespace tactus
