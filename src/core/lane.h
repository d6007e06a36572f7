// A lane is where batches run: a device, a share of one (a gpu-let), or a stream of one.
#pragma once

#include <span>

#include "base/fixed_vector.h"
#include "base/ids.h"
#include "base/serving_time.h"
#include "core/model_set.h"

namespace tactus {

struct RunningBatch {
  BatchId id;
  ModelId model;
  ExitId exit;
  int batch = 0;
  TimePoint started;
  TimePoint expected_end;       // started + profiled latency
  TimePoint deadline = kNever;  // of its most urgent request
  int priority = 1;             // the highest of its requests
};

struct Lane {
  LaneId id;
  DeviceId device{0};
  LaneClass lane_class{0};            // its row of the profile table
  double fraction = 1;                // share of the device
  int slots = 1;                      // batches at once; 1: time division
  ModelSet serves = ModelSet::All();  // the models of its spec that the plan has there
  bool open = true;                   // a closed lane takes no new batch
  TimePoint free_at{};  // when the last running batch is expected to end; the past when idle
  FixedVector<RunningBatch> batches;

  std::span<const RunningBatch> running() const { return batches; }
  bool HasFreeSlot() const { return open && batches.size() < static_cast<std::size_t>(slots); }
};

}  // namespace tactus
