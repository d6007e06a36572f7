#include "planners/autoscale/advice.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tactus {
namespace {

// 4 / (1 - 0.2) is a little more than 5 in floating point; it must still be 5.
double RoundUp(double lanes) { return std::ceil(lanes - 1e-9); }

}  // namespace

Status Validate(const AutoscaleOptions& options) {
  const auto ratio = [](double value) { return value >= 0 && value < 1; };
  if (!ratio(options.bad_threshold)) return InvalidArgument("bad_threshold must be in [0, 1)");
  if (!ratio(options.idle_threshold)) return InvalidArgument("idle_threshold must be in [0, 1)");
  if (!ratio(options.idle_kept) || options.idle_kept > options.idle_threshold) {
    return InvalidArgument(
        "idle_kept must be in [0, idle_threshold]: more would be given back again");
  }
  if (!(options.most_growth > 1)) return InvalidArgument("most_growth must be above 1");
  if (options.least < 1 || options.least > options.most) {
    return InvalidArgument("the least number of lanes must be from 1 to the most, which is " +
                           std::to_string(options.most));
  }
  return {};
}

int AdviseLanes(const LoadReading& reading, const AutoscaleOptions& options) {
  const double now = reading.lanes;
  double wanted = now;
  const bool bad = reading.bad_ratio > options.bad_threshold;
  if (bad && reading.untouched == 0) {
    const double good = std::max(0.0, 1 - reading.bad_ratio);
    const double most = std::max(now + 1, now * options.most_growth);
    wanted = good > 0 ? std::min(most, RoundUp(now / good)) : most;
  } else if (reading.idle_ratio > options.idle_threshold) {
    wanted = std::min(now, RoundUp(now * (1 - reading.idle_ratio) / (1 - options.idle_kept)));
    if (bad) wanted = std::max(wanted, now - reading.untouched);
  }
  return static_cast<int>(std::clamp<double>(std::floor(wanted), options.least, options.most));
}

}  // namespace tactus
