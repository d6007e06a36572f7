// A batch on its way: what the dispatcher hands to a driver, and what comes back.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/serving_time.h"
#include "core/request.h"

namespace tactus {

// `requests` stay valid until the batch is finished.
struct Batch {
  BatchId id;
  ModelId model;
  ExitId exit;
  LaneId lane;
  TimePoint start;         // the decision's instant
  TimePoint expected_end;  // start + profiled latency
  std::span<const Request> requests;
};

enum class BatchStatus : std::uint8_t {
  kOk,
  kFailed,   // the engine could not run it; its requests end as errors
  kAborted,  // stopped on our request: nobody waits for it, or it was preempted
  kLost,     // the lane died: it closes, and the requests go back to their queue
};

struct BatchReport {
  TimePoint started;  // execution as the lane saw it
  TimePoint ended;
  BatchStatus status = BatchStatus::kOk;
  // From `started` until its input was on the device, waiting for the link included; 0 where there
  // is no link or nobody measures it.
  Duration upload{};
};

}  // namespace tactus
