// Advice for a system that runs now: the rule of advice.h over the recent past.
#pragma once

#include "base/serving_time.h"
#include "planners/autoscale/advice.h"
#include "planners/autoscale/load_window.h"

namespace tactus {

struct LaneAdvice {
  int advised = 0;      // lanes to have in all
  LoadReading reading;  // what it follows from; `lanes` are those there are
};

class LaneAdviser {
 public:
  LaneAdviser(AutoscaleOptions options, Duration window) : options_(options), window_(window) {}

  // Readings come in the order of time. When `lanes` is not what it was, the window starts anew:
  // what other lanes did says nothing about these. Until it is full lanes are added, but none is
  // given back: a process that has just started was idle, which means nothing.
  LaneAdvice Take(const ServiceTotals& totals, int lanes);

 private:
  const AutoscaleOptions options_;
  LoadWindow window_;
  int lanes_ = 0;  // of the last reading; 0 before the first
};

}  // namespace tactus
