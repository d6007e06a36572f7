// How much longer than at best the way to a client and back takes of late: what the network, and a
// client that has much to do, add to it.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/serving_time.h"
#include "service/loop_delay.h"

namespace tactus {

// From one thread at a time.
class WayDelay {
 public:
  // One way there and back took so long.
  void Note(std::chrono::nanoseconds round_trip) {
    best_ = std::min(best_, round_trip);
    next_best_ = std::min(next_best_, round_trip);
    beyond_.Note(round_trip - best_);
    if (++noted_ % kBestOf == 0) best_ = std::exchange(next_best_, kNone);
  }

  // Beyond the best of late, all but one of forty times. That a client is far away does not count.
  Duration Most() const { return std::chrono::duration_cast<Duration>(beyond_.Most()); }

 private:
  static constexpr int kBestOf = 1000;  // to twice as many
  static constexpr std::chrono::nanoseconds kNone = std::chrono::nanoseconds::max();

  std::chrono::nanoseconds best_ = kNone;
  std::chrono::nanoseconds next_best_ = kNone;  // since it was last forgotten
  LoopDelay beyond_;
  int noted_ = 0;
};

}  // namespace tactus
