// The journal: every event that reached a dispatcher and every decision it took, in order. Fed back
// to a new dispatcher it must lead to the same decisions, every one (`tactus replay`).
#pragma once

#include <cstdint>

#include "core/batch.h"
#include "core/decision.h"
#include "core/plan.h"

namespace tactus {

struct JournalRecord {
  enum class Kind : std::uint8_t {
    kArrive,
    kFinish,
    kCancel,
    kLane,
    kStep,
    kDispatch,
    kDrop,
    kPreempt,
    kWait,
    kRatio,    // policies are told longer or shorter batches from here on
    kReserve,  // or to leave so many ns (id) for stalls
    kHolding,  // an event: the lane has the model, or has lost it
  };
  Kind kind = Kind::kStep;
  std::uint8_t detail = 0;  // BatchStatus, DropReason, whether a lane is open or has a model
  std::uint16_t exit = 0;
  std::uint32_t model = 0;
  std::uint32_t lane = 0;   // or, of a ratio, a lane class
  std::uint32_t count = 0;  // batch size, drop count, a ratio in thousandths
  std::uint32_t shape = 0;
  std::uint32_t priority = 0;
  std::uint64_t id = 0;  // request or batch
  TimePoint at{};        // arrival, now, or wait-until
  TimePoint deadline{};  // of an arrival; the report's start of a finish
  TimePoint ended{};     // the report's end of a finish
  Duration upload{};     // of a finish: until its input was on the device

  bool operator==(const JournalRecord&) const = default;
};
static_assert(sizeof(JournalRecord) == 64, "records are written to files as they are");

struct ServedModels;

// What Dispatcher::SetLaneShare is told.
struct LaneShare {
  LaneId lane;
  LaneClass lane_class;
  double fraction = 1;

  bool operator==(const LaneShare&) const = default;
};

// Append is called on the dispatcher's thread: it must neither block nor allocate.
class Journal {
 public:
  virtual ~Journal() = default;
  // The dispatcher serves this from here on. Rare, and outside the hot path: it may take its time.
  virtual void Configured(const ServedModels&) {}
  virtual void Append(const JournalRecord& record) noexcept = 0;
  // Likewise rare: the policy reads this plan from here on, or none ...
  virtual void Adopted(const Plan*) {}
  // ... and the lane is this share of its device.
  virtual void Reshaped(const LaneShare&) {}
};

}  // namespace tactus
