// How a pipeline request ended: one request that takes several, to models that wait for each other.
#pragma once

#include <cstdint>

namespace tactus {

enum class PipelineOutcome : std::uint8_t {
  kOnTime,     // all its stages answered by its deadline
  kLate,       // all of them, the last after it
  kDropped,    // a stage's run was refused, or came too late for those behind it
  kCancelled,  // nobody waits for it
};

}  // namespace tactus
