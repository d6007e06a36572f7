// How the simulated machine departs from its profile: from an instant on every batch takes longer,
// or all lanes stand still for a while, again and again.
#pragma once

#include "base/serving_time.h"
#include "workload/scenario.h"

namespace tactus {

class MachineDrift {
 public:
  explicit MachineDrift(const Scenario& scenario);

  // What a batch takes that starts then and took `alone` on the machine as profiled.
  Duration Stretched(TimePoint start, Duration alone) const;
  // When work of that length ends, stalls included.
  TimePoint End(TimePoint start, Duration work) const;

 private:
  const TimePoint from_;
  const double factor_;
  const Duration stall_;
  const Duration every_;
};

}  // namespace tactus
