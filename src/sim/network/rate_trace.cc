#include "sim/network/rate_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tactus {

RateTrace::RateTrace(std::vector<RateStep> steps, Duration repeat)
    : steps_(std::move(steps)), repeat_(repeat) {
  CHECK(!steps_.empty(), "a trace has a rate");
  CHECK(std::ranges::is_sorted(steps_, {}, &RateStep::at), "steps ascend");
  CHECK(repeat_ == Duration{} || kStart + repeat_ > steps_.back().at,
        "a trace ends after its steps");
}

TimePoint RateTrace::InPeriod(TimePoint t) const {
  return repeat_ == Duration{} ? t : kStart + (t - kStart) % repeat_;
}

std::size_t RateTrace::StepAt(TimePoint t) const {
  const auto after = std::ranges::upper_bound(steps_, InPeriod(t), {}, &RateStep::at);
  return after == steps_.begin() ? 0 : static_cast<std::size_t>(after - steps_.begin()) - 1;
}

double RateTrace::At(TimePoint t) const { return steps_[StepAt(t)].mbps; }

TimePoint RateTrace::NextChange(TimePoint t, std::size_t step) const {
  const TimePoint in = InPeriod(t);
  // Before the first step of all it is the first one's rate that holds.
  if (step + 1 < steps_.size()) return t + (steps_[step + 1].at - in);
  return repeat_ == Duration{} ? kNever : t + (kStart + repeat_ - in);
}

TimePoint RateTrace::EndOf(TimePoint start, double bits) const {
  std::size_t idle = 0;  // steps in a row without a rate: a whole period of them never ends
  double left = bits;
  for (TimePoint t = start;;) {
    const std::size_t step = StepAt(t);
    const double per_ns = steps_[step].mbps * 1e-3;
    const TimePoint next = NextChange(t, step);
    const double room = static_cast<double>((next - t).count()) * per_ns;
    if (per_ns > 0 && (left <= room || next == kNever)) {
      return t + Nanos(static_cast<std::int64_t>(std::ceil(left / per_ns - 1e-6)));
    }
    if (next == kNever) return kNever;
    idle = per_ns > 0 ? 0 : idle + 1;
    if (idle > steps_.size()) return kNever;
    left -= room;
    t = next;
  }
}

void RateTrace::AddOutage(TimePoint from, TimePoint to) {
  if (from >= to) return;
  const double after = At(to);
  std::vector<RateStep> steps;
  for (const RateStep& step : steps_) {
    if (step.at < from) steps.push_back(step);
  }
  if (steps.empty() && from > kStart) steps.push_back({kStart, At(kStart)});
  steps.push_back({from, 0});
  if (repeat_ == Duration{} || to < kStart + repeat_) steps.push_back({to, after});
  for (const RateStep& step : steps_) {
    if (step.at > to) steps.push_back(step);
  }
  steps_ = std::move(steps);
}

double RateTrace::Quantile(TimePoint from, TimePoint to, double quantile) const {
  if (to <= from) return At(from);
  std::vector<std::pair<double, Duration>> held;
  for (TimePoint t = from; t < to;) {
    const std::size_t step = StepAt(t);
    const TimePoint next = std::min(to, NextChange(t, step));
    held.emplace_back(steps_[step].mbps, next - t);
    t = next;
  }
  std::ranges::sort(held);
  const double want = quantile * ToSeconds(to - from);
  double seconds = 0;
  for (const auto& [mbps, time] : held) {
    seconds += ToSeconds(time);
    if (seconds >= want) return mbps;
  }
  return held.back().first;
}

}  // namespace tactus
