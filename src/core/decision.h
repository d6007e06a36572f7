// What a policy answers: one value, carried out before the next question.
#pragma once

#include <variant>

#include "base/ids.h"
#include "base/serving_time.h"
#include "core/request.h"

namespace tactus {

// Run the first `batch` requests of the model's queue. They must be Batchable.
struct Dispatch {
  ModelId model;
  ExitId exit;
  int batch = 0;
  LaneId lane;
  bool operator==(const Dispatch&) const = default;
};

// Give up the first `count` requests of the model's queue.
struct Drop {
  ModelId model;
  int count = 0;
  DropReason reason = DropReason::kShed;
  bool operator==(const Drop&) const = default;
};

// Stop a running batch; its requests go back to their queue in deadline order.
struct Preempt {
  LaneId lane;
  BatchId batch;
  bool operator==(const Preempt&) const = default;
};

// Nothing to do before `until`, unless something happens.
struct Wait {
  TimePoint until = kNever;
  bool operator==(const Wait&) const = default;
};

using Decision = std::variant<Wait, Dispatch, Drop, Preempt>;

}  // namespace tactus
