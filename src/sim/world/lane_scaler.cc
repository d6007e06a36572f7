#include "sim/world/lane_scaler.h"

#include <algorithm>

namespace tactus {

int LaneScaler::Advise(TimePoint now, const ServiceTotals& totals) {
  window_.Add(totals);
  const LoadReading reading = window_.Read(open_);
  int advised = AdviseLanes(reading, options_.advice);
  if (!window_.Full()) advised = std::max(advised, open_ + starting());
  history_.push_back({.at_s = ToSeconds(now - kStart),
                      .open = open_,
                      .starting = starting(),
                      .advised = advised,
                      .requests = reading.requests,
                      .bad_ratio = reading.bad_ratio,
                      .idle_ratio = reading.idle_ratio});
  // The lanes that start were asked for by an earlier reading of the same trouble: they count.
  while (!starting_.empty() && open_ + starting() > advised) starting_.pop_back();
  if (open_ > advised) {
    open_ = advised;
    window_.Restart(totals);
  }
  const int asked = advised - open_ - starting();
  for (int i = 0; i < asked; ++i) starting_.push_back(now + options_.start_delay);
  return asked > 0 ? asked : 0;
}

void LaneScaler::Ready(const ServiceTotals& totals) {
  if (starting_.empty() || starting_.front() > totals.at) return;
  starting_.pop_front();
  ++open_;
  window_.Restart(totals);
}

}  // namespace tactus
