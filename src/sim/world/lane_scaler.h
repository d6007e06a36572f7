// Lanes that come and go in simulation: the advice of planners/autoscale, followed with the delay
// that a device takes to start.
#pragma once

#include <deque>
#include <vector>

#include "base/serving_time.h"
#include "metrics/report.h"
#include "planners/autoscale/advice.h"
#include "planners/autoscale/load_window.h"

namespace tactus {

struct LaneScalerOptions {
  AutoscaleOptions advice;
  Duration window = Seconds(10);       // that the advice looks at
  Duration start_delay = Seconds(30);  // from asking for a lane to its first batch
  int initial = 1;                     // lanes open at the start
};

// The window starts anew whenever the open lanes change: a reading across the change would see the
// old lanes' idleness as the new ones', and give back twice. Until it is full again lanes are added
// but none given back.
//
// Lanes 0 .. open - 1 are open. The highest go first, which a scheduler that fills the lowest first
// leaves idle; what starts is not waited for when it is not needed any more.
class LaneScaler {
 public:
  explicit LaneScaler(LaneScalerOptions options)
      : options_(options), window_(options.window), open_(options.initial) {}

  // Takes the advice. Lanes to close are closed at once; the lanes to open come with Ready.
  // Returns how many lanes were asked for, all ready after start_delay.
  int Advise(TimePoint now, const ServiceTotals& totals);
  // A lane that was asked for start_delay ago is there, unless it was given up meanwhile.
  void Ready(const ServiceTotals& totals);

  Duration start_delay() const { return options_.start_delay; }
  int open() const { return open_; }
  int starting() const { return static_cast<int>(starting_.size()); }
  const std::vector<ScalingPoint>& history() const { return history_; }

 private:
  const LaneScalerOptions options_;
  LoadWindow window_;
  int open_;
  std::deque<TimePoint> starting_;  // when each will be there, soonest first
  std::vector<ScalingPoint> history_;
};

}  // namespace tactus
