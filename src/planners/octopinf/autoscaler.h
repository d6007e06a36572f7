// OctopInf's AutoScaler (Section III-D): between two plans, one more instance for a stage whose
// instances are too busy, one fewer for a stage that does without. Pure: the caller says what rates
// are and what time it is. Each step is one change for a stage at most, and both directions wait,
// so that it does not flap.
#pragma once

#include <map>
#include <utility>

#include "planners/octopinf/streams.h"

namespace tactus {

struct AutoScalerOptions {
  double up = 0.8;    // a stage whose instances are busy for more of the time gets another
  double down = 0.7;  // it gives one back where the others would be busy for less
  Duration after_up = Seconds(150);    // no further one so long
  Duration after_down = Seconds(240);  // none is given back so soon after any change
};

class AutoScaler {
 public:
  explicit AutoScaler(AutoScalerOptions options = {}) : options_(options) {}

  struct Change {
    FleetPipelineId pipeline;
    FleetStageId stage;
    int by = 0;       // instances: 1, -1; 0: one more is needed and there is no room
    double busy = 0;  // of the time, each of those that there were
  };
  // `input` has the rates as they are now. Changes `plan`, which is one for this fleet. `now` does
  // not fall.
  std::vector<Change> Step(const FleetInput& input, FleetPlan& plan, TimePoint now);

 private:
  AutoScalerOptions options_;
  std::map<std::pair<FleetPipelineId, FleetStageId>, TimePoint> changed_;
};

}  // namespace tactus
