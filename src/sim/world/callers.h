// Callers that wait for their answers (a scenario's process "closed"): each calls again some time
// after its answer or its refusal.
#pragma once

#include "base/rng.h"
#include "base/serving_time.h"
#include "sim/world/event_heap.h"
#include "workload/scenario.h"

namespace tactus {

class Callers {
 public:
  // Does nothing in a scenario whose arrivals do not wait for answers.
  explicit Callers(const Scenario& scenario)
      : wait_(scenario.process == ArrivalProcess::kClosed),
        rng_(Rng::Stream(scenario.seed, "callers")),
        think_(FromMillis(scenario.think_ms)),
        retry_(FromMillis(scenario.retry_ms)),
        end_(kStart + FromSeconds(scenario.duration_s)) {}

  // A call of this source (a model or, behind the models, a pipeline) ended at `at`: its caller's
  // next call is an event of `heap`, unless the run is over by then.
  void Ended(std::uint32_t source, bool answered, TimePoint at, EventHeap& heap) {
    if (!wait_) return;
    // From half to one and a half times the mean, so that callers do not march in step.
    const double mean = ToSeconds(answered ? think_ : retry_);
    const TimePoint next = at + FromSeconds((0.5 + rng_.Uniform()) * mean);
    if (next < end_) heap.Push(next, EventClass::kArrival, source);
  }

 private:
  bool wait_;
  Rng rng_;
  Duration think_;
  Duration retry_;
  TimePoint end_;
};

}  // namespace tactus
