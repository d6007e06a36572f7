// What became of a pipeline request, which is several requests to models.
#pragma once

#include <cstdint>

#include "base/serving_time.h"
#include "core/pipeline_outcome.h"

namespace tactus {

struct PipelineRecord {
  TimePoint arrival;
  TimePoint ended;  // its last answer, or when it was dropped
  std::uint32_t pipeline = 0;
  std::uint32_t stage = 0;  // that a dropped one ended at
  PipelineOutcome outcome = PipelineOutcome::kOnTime;
  std::int32_t items = 0;       // rows that stages ran for, and ...
  std::int32_t items_lost = 0;  // ... those that the answer does without
};

}  // namespace tactus
