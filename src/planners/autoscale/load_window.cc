#include "planners/autoscale/load_window.h"

#include <algorithm>

namespace tactus {

void LoadWindow::Add(const ServiceTotals& totals) {
  const std::size_t n = readings_.size();
  // The newest but one is too near: the newest told nothing that this one does not.
  if (n >= 2 && totals.at - readings_[n - 2].at < length_ / kMostReadings) {
    readings_.back() = totals;
  } else {
    readings_.push_back(totals);
  }
  while (readings_.size() > 2 && totals.at - readings_[1].at >= length_) readings_.pop_front();
}

LoadReading LoadWindow::Read(int lanes) const {
  LoadReading reading;
  reading.lanes = lanes;
  if (readings_.size() < 2) return reading;
  const ServiceTotals& from = readings_.front();
  const ServiceTotals& to = readings_.back();
  const std::int64_t bad = to.bad - from.bad;
  reading.requests = to.good - from.good + bad;
  if (reading.requests > 0) {
    reading.bad_ratio = static_cast<double>(bad) / static_cast<double>(reading.requests);
  }
  const std::size_t known = std::min(
      {from.batches.size(), to.batches.size(), static_cast<std::size_t>(std::max(lanes, 0))});
  for (std::size_t lane = 0; lane < known; ++lane) {
    if (from.batches[lane] == to.batches[lane]) ++reading.untouched;
  }
  const double available = ToSeconds(to.available - from.available);
  if (available <= 0) return reading;
  // A batch is booked when it ends, so a short window may hold more than its length.
  reading.idle_ratio = std::clamp(1 - ToSeconds(to.busy - from.busy) / available, 0.0, 1.0);
  return reading;
}

}  // namespace tactus
