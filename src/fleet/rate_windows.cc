#include "fleet/rate_windows.h"

#include <algorithm>
#include <utility>

namespace tactus {
namespace {

constexpr Duration kRateWindows[] = {Seconds(15), Seconds(30), Seconds(60)};

}  // namespace

void RateWindows::Add(TimePoint now, const std::map<std::string, std::uint64_t>& counts) {
  Sample sample{now,
                samples_.empty() ? std::map<std::string, std::uint64_t>{} : samples_.back().counts};
  for (const auto& [model, count] : counts) {
    std::uint64_t& last = last_[model];
    // The first look counts nothing: it may be of a worker that served before.
    if (!samples_.empty()) sample.counts[model] += count >= last ? count - last : count;
    last = count;
  }
  samples_.push_back(std::move(sample));
  while (samples_.size() > 2 && samples_[1].at <= now - kRateWindows[2]) samples_.pop_front();
}

std::vector<ModelRate> RateWindows::Rates() const {
  std::vector<ModelRate> rates;
  if (samples_.empty()) return rates;
  const Sample& last = samples_.back();
  for (const auto& [model, count] : last.counts) {
    if (count == 0) continue;
    double most = -1;
    for (const Duration window : kRateWindows) {
      // The latest sample that is as old as the window.
      const auto after = std::ranges::upper_bound(samples_, last.at - window, {}, &Sample::at);
      if (after == samples_.begin()) continue;
      const Sample& first = *std::prev(after);
      const auto before = first.counts.find(model);
      const std::uint64_t had = before == first.counts.end() ? 0 : before->second;
      most = std::max(most, static_cast<double>(count - had) / ToSeconds(last.at - first.at));
    }
    if (most >= 0) rates.push_back({model, most});
  }
  return rates;
}

}  // namespace tactus
