#include "planners/autoscale/lane_adviser.h"

#include <algorithm>

namespace tactus {

LaneAdvice LaneAdviser::Take(const ServiceTotals& totals, int lanes) {
  if (lanes != lanes_) {
    window_.Restart(totals);
    lanes_ = lanes;
  } else {
    window_.Add(totals);
  }
  LaneAdvice advice{.advised = 0, .reading = window_.Read(lanes)};
  advice.advised = AdviseLanes(advice.reading, options_);
  const int limited = std::clamp(lanes, options_.least, options_.most);
  if (!window_.Full()) advice.advised = std::max(advice.advised, limited);
  return advice;
}

}  // namespace tactus
