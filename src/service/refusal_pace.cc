#include "service/refusal_pace.h"

#include <algorithm>

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

}  // namespace tactus
