#include "runtime_reading.h"

namespace tactus {

RuntimeReading ReadingOf(const Runtime& runtime, const InferenceService* service) {
  const InferenceService& models = service != nullptr ? *service : runtime;
  RuntimeReading reading{.pending = runtime.pending(),
                         .calls = runtime.calls(),
                         .uptime = runtime.uptime(),
                         .lanes = runtime.lane_loads(),
                         .models = models.Index(),
                         .statistics = {},
                         .advice = {},
                         .layout = runtime.layout(),
                         .planning = {}};
  if (auto statistics = models.Statistics("", -1)) reading.statistics = std::move(*statistics);
  return reading;
}

}  // namespace tactus
