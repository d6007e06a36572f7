// The future of a simulation: events keyed by (time, class, sequence). At one instant completions
// come before arrivals, so that a lane that becomes free is seen free by what arrives; within a
// class the one pushed first comes first.
//
// It stays small: the next arrival of each model and the running batches. The dispatcher's timer is
// not an event: it is asked after all events of its instant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

// A shared device's change may end a batch, so it comes before what is finished; a lane dies after
// what it finished and before it comes back; what autoscaling
// or replanning does comes last: it looks at an instant that is complete.
enum class EventClass : std::uint8_t {
  kDevice,
  kFinish,
  kArrival,
  kRead,
  kStage,
  kLaneLost,
  kLaneBack,
  kLaneReady,
  kAutoscale,
  kLanePrepared,
  kReplan
};

struct Event {
  TimePoint at;
  EventClass kind = EventClass::kArrival;
  std::uint32_t subject = 0;  // of an arrival: the model, or behind them the pipeline; of a call
                              // that is read: its place among those that are; of a stage
                              // that may start: PipelineRequests'; of a completion: the device's
                              // place; of a device's change: the device; of a lane lost, back or
                              // prepared: the lane
  std::uint64_t sequence = 0;
};

class EventHeap {
 public:
  explicit EventHeap(std::size_t expected) { events_.reserve(expected); }

  bool empty() const { return events_.empty(); }
  const Event& top() const { return events_.front(); }
  TimePoint NextAt() const { return events_.empty() ? kNever : events_.front().at; }

  // Returns the event's sequence number, which names it.
  std::uint64_t Push(TimePoint at, EventClass kind, std::uint32_t subject) {
    events_.push_back({at, kind, subject, next_});
    std::push_heap(events_.begin(), events_.end(), After);
    return next_++;
  }
  void Pop() {
    std::pop_heap(events_.begin(), events_.end(), After);
    events_.pop_back();
  }

 private:
  static bool After(const Event& a, const Event& b) {
    if (a.at != b.at) return a.at > b.at;
    if (a.kind != b.kind) return a.kind > b.kind;
    return a.sequence > b.sequence;
  }

  std::vector<Event> events_;
  std::uint64_t next_ = 0;
};

}  // namespace tactus
