#include "fleet/link_meter.h"

#include <algorithm>
#include <vector>

namespace tactus {

LinkReading LinkMeter::Read(TimePoint now) const {
  LinkReading reading;
  const auto recent = [&](const Sample& each) { return each.at + kWindow >= now; };
  for (std::size_t i = 0; i < std::min(next_probe_, probes_.size()); ++i) {
    if (!recent(probes_[i])) continue;
    const Duration took = std::max(probes_[i].took, Nanos(1));
    reading.rtt = reading.rtt == Duration{} ? took : std::min(reading.rtt, took);
  }
  std::vector<double> rates;
  for (std::size_t i = 0; i < std::min(next_call_, calls_.size()); ++i) {
    const Sample& each = calls_[i];
    if (!recent(each)) continue;
    // No rate beyond what can be told from the time that it takes to copy the bytes.
    constexpr double kMostMbps = 100'000;
    constexpr double kBitsPerByte = 8;
    const double us = ToMicros(std::max(each.took - reading.rtt, Nanos(1)));
    rates.push_back(std::min(kMostMbps, static_cast<double>(each.bytes) * kBitsPerByte / us));
  }
  if (rates.empty()) return reading;
  const auto quarter = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 4);
  std::ranges::nth_element(rates, quarter);
  reading.mbps = *quarter;
  return reading;
}

}  // namespace tactus
