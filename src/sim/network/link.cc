#include "sim/network/link.h"

#include <algorithm>
#include <cmath>

#include "core/fleet_plan.h"

namespace tactus {

// The largest of as many geometric draws as there are packets: P(at most k) = (1 - loss^(k+1))^n.
double Link::Rounds(double bytes) {
  constexpr double kMost = 10'000;
  if (options_.loss <= 0) return 0;
  const double packets = std::max(1.0, std::ceil(bytes / kPacketBytes));
  const double some = -std::expm1(std::log(options_.luck.Uniform()) / packets);
  return std::clamp(std::ceil(std::log(some) / std::log(options_.loss)) - 1, 0.0, kMost);
}

Sending Link::Send(TimePoint now, double bytes, TimePoint latest) {
  while (!waiting_.empty() && waiting_.front().begins <= now) {
    waiting_bytes_ -= waiting_.front().bytes;
    waiting_.pop_front();
  }
  if (waiting_.empty()) waiting_bytes_ = 0;
  const TimePoint begins = std::max(now, free_at_);
  const double bits = 8 * bytes / (1 - options_.loss);
  const double mbps = begins < kNever ? options_.rate.At(begins) : 0;
  // In seconds: a rate close to 0 would overflow an instant.
  const double seconds = mbps > 0 ? bits * 1e-6 / mbps : 1e12;
  if (seconds + ToSeconds(begins - now) > ToSeconds(latest - options_.latency - now)) {
    ++totals_.dead;
    return {SendOutcome::kDead, std::max(now, std::min(begins, latest))};
  }
  if (begins > now && waiting_bytes_ + bytes > options_.most_waiting) {
    ++totals_.full;
    return {SendOutcome::kFull, now};
  }
  const TimePoint through = options_.rate.EndOf(begins, bits);
  if (begins > now) {
    waiting_.push_back({begins, bytes});
    waiting_bytes_ += bytes;
  }
  free_at_ = through;
  if (through == kNever) {  // the link stops for good while it is sent
    ++totals_.dead;
    return {SendOutcome::kDead, latest};
  }
  ++totals_.delivered;
  totals_.bytes += bytes;
  totals_.busy += through - begins;
  const Duration again = FromSeconds(2 * ToSeconds(options_.latency) * Rounds(bytes));
  return {SendOutcome::kDelivered, through + options_.latency + again};
}

}  // namespace tactus
