#include "ensemble/step_latency.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tactus {

std::optional<Duration> StepLatency::Update(TimePoint now) {
  std::array<Duration, kMost> recent;
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(next_, kMost); ++i) {
    if (samples_[i].at + kWindow >= now) recent[count++] = samples_[i].took;
  }
  if (count == 0) {
    smoothed_.reset();  // nobody knows any more
    return smoothed_;
  }
  const bool silent = samples_[(next_ - 1) % kMost].at + kSilence < now;
  if (silent && smoothed_) return smoothed_ = *smoothed_ / 2;
  const auto middle = recent.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(recent.begin(), middle, recent.begin() + static_cast<std::ptrdiff_t>(count));
  if (!smoothed_) return smoothed_ = *middle;
  const auto change = static_cast<double>((*middle - *smoothed_).count());
  return smoothed_ = *smoothed_ + Duration{std::llround(kNew * change)};
}

}  // namespace tactus
