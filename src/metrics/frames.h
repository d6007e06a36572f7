// What became of a pipeline's frames, each of which is several requests.
#pragma once

#include <cstdint>

#include "base/serving_time.h"

namespace tactus {

enum class FrameOutcome : std::uint8_t {
  kOnTime,   // all its stages answered by its deadline
  kLate,     // all of them, the last after it
  kDropped,  // a stage's request was refused, or came too late for those behind it
};

struct FrameRecord {
  TimePoint arrival;
  TimePoint ended;  // its last answer, or when it was dropped
  std::uint32_t pipeline = 0;
  std::uint32_t stage = 0;  // that a dropped one was lost at
  FrameOutcome outcome = FrameOutcome::kOnTime;
};

}  // namespace tactus
