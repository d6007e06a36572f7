#include "sim/devices/machine_drift.h"

#include <algorithm>
#include <cmath>

namespace tactus {

MachineDrift::MachineDrift(const Scenario& scenario)
    : from_(kStart + FromSeconds(scenario.drift_from_s)),
      factor_(scenario.drift_factor),
      stall_(FromMillis(scenario.drift_stall_ms)),
      every_(FromMillis(scenario.drift_every_ms)) {}

Duration MachineDrift::Stretched(TimePoint start, Duration alone) const {
  if (factor_ == 1 || start < from_) return alone;
  return std::max(Duration{std::llround(static_cast<double>(alone.count()) * factor_)}, Nanos(1));
}

// Stalls begin at from_ and then at each multiple of every_ after it.
TimePoint MachineDrift::End(TimePoint start, Duration work) const {
  if (stall_ == Duration{} || start + work <= from_) return start + work;
  // As if the work had begun with the first stall, or at the end of the one that it met.
  const Duration before = std::max(from_ - start, Duration{});
  const Duration into = std::max(start - from_, Duration{}) % every_;
  const TimePoint period = std::max(start, from_) - into;
  const Duration done = std::max(into - stall_, Duration{});  // of the period's open part
  const Duration left = work - before + done;
  const Duration open = every_ - stall_;
  // Work that ends as a stall begins does not wait for its end.
  const auto whole = (left - Nanos(1)) / open;
  return period + whole * every_ + stall_ + (left - whole * open);
}

}  // namespace tactus
