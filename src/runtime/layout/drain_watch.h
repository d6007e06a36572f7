// For how long lanes have been ending what they run, before they go or before a model leaves them,
// and which of them take too long. Nothing else bounds that: an engine may hang.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/serving_time.h"

namespace tactus {

class DrainWatch {
 public:
  // So many times the longest batch of the profiles is too long, and nothing shorter than kLeast:
  // threads are late, too.
  static constexpr int kMultiple = 10;
  static constexpr Duration kLeast = Millis(100);

  explicit DrainWatch(Duration longest_batch)
      : bound_(std::max(kMultiple * longest_batch, kLeast)) {}

  void Begin(LaneId lane, TimePoint now) { drains_.push_back({.lane = lane, .begun = now}); }
  void End(LaneId lane) {
    std::erase_if(drains_, [&](const Drain& drain) { return drain.lane == lane; });
  }
  void EndAll() { drains_.clear(); }

  // One that has taken longer than the bound, once each; nothing where there is none.
  std::optional<LaneId> Overdue(TimePoint now) {
    for (Drain& drain : drains_) {
      if (drain.told || now - drain.begun <= bound_) continue;
      drain.told = true;
      return drain.lane;
    }
    return std::nullopt;
  }

  Duration bound() const { return bound_; }
  int lanes() const { return static_cast<int>(drains_.size()); }
  // How long the slowest lane has drained; 0 where none drains.
  Duration Longest(TimePoint now) const {
    Duration longest{};
    for (const Drain& drain : drains_) longest = std::max(longest, now - drain.begun);
    return longest;
  }

 private:
  struct Drain {
    LaneId lane;
    TimePoint begun;
    bool told = false;
  };
  Duration bound_;
  std::vector<Drain> drains_;
};

}  // namespace tactus
