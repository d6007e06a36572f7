// How fast a link is when: a rate that is constant between the steps of a trace. Pure: what is sent
// is integrated exactly, so when it is through is a closed form.
#pragma once

#include <span>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

struct RateStep {
  TimePoint at;
  double mbps = 0;  // from then on; 0: nothing goes through

  bool operator==(const RateStep&) const = default;
};

class RateTrace {
 public:
  // The rate at all times.
  explicit RateTrace(double mbps) : RateTrace({{kStart, mbps}}, Duration{}) {}
  // `steps` ascend, at least one. Before the first one its rate holds. After `repeat` the trace
  // begins anew; 0: the last rate holds for ever.
  RateTrace(std::vector<RateStep> steps, Duration repeat);

  double At(TimePoint t) const;
  // When that many bits are through that begin at `start`, rounded up to a nanosecond; kNever where
  // the rate stays 0.
  TimePoint EndOf(TimePoint start, double bits) const;
  // Nothing goes through in [from, to).
  void AddOutage(TimePoint from, TimePoint to);
  // The rate of which a part `quantile` of the time in [from, to) has less, as steps weigh by how
  // long they hold: 0.25 is what planners take for a link.
  double Quantile(TimePoint from, TimePoint to, double quantile) const;

  std::span<const RateStep> steps() const { return steps_; }

 private:
  // The step that holds at `t`, and when in its own time that is.
  std::size_t StepAt(TimePoint t) const;
  TimePoint InPeriod(TimePoint t) const;
  // When the step after `step` begins, for a time in the step; kNever where there is none.
  TimePoint NextChange(TimePoint t, std::size_t step) const;

  std::vector<RateStep> steps_;
  Duration repeat_;
};

}  // namespace tactus
