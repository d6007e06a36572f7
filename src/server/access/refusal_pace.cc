#include "server/access/refusal_pace.h"

#include <algorithm>
#include <utility>

namespace tactus {

TimePoint RefusalPace::When(const std::string& client, std::size_t bytes, Duration patience,
                            TimePoint now) {
  if (told_.size() >= kMostClients && !told_.contains(client)) told_.clear();
  const auto [known, is_new] = told_.try_emplace(client, now);
  const TimePoint invited = known->second + kInvited;
  if (is_new || invited <= now) return known->second = now;
  const Duration took =
      kCall + Duration(static_cast<std::int64_t>(kNsPerByte * static_cast<double>(bytes)));
  const TimePoint at =
      std::min({std::max(next_, now), invited, now + std::max(patience, Duration{}) / 2});
  next_ = std::min(std::max(next_, now) + kShare * took, now + kInvited);
  // Who waits that long may come back for one more.
  known->second = std::max(known->second, at);
  return at;
}

void PacedRefusals::Tell(const std::string& client, std::size_t bytes,
                         std::optional<Duration> patience, std::function<void()> tell) {
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    const TimePoint at =
        stopped_ ? now : pace_.When(client, bytes, patience.value_or(RefusalPace::kInvited), now);
    if (at > now && timer_.waiting() < kMostHeld) {
      if (!started_) timer_.Start([this] { return clock_.Now(); });
      started_ = true;
      timer_.At(at, std::move(tell));
      return;
    }
  }
  tell();
}

void PacedRefusals::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
  }
  timer_.Stop();
  timer_.Run(kNever);
}

}  // namespace tactus
