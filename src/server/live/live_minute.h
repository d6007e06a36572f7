// The calls and batches of the last minute in which somebody watched: what a "what if" is asked of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "server/live/live_moments.h"

namespace tactus {

class LiveMinute {
 public:
  static constexpr Duration kKept = Seconds(60);
  // Of calls, and as many of batches: the oldest go, and the minute is shorter.
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  struct Kept {
    std::vector<std::string> models;           // by number
    std::vector<LiveMoments::Answer> answers;  // in the order in which they were noted
    std::vector<LiveMoments::Batch> batches;
    TimePoint from;  // all that ended from here on is kept ...
    TimePoint to;    // ... until here; equal: nothing is
  };

  // All of this from any thread.
  void Clear();
  // Where some was lost, what was before is too: the load is not known.
  void Add(const LiveMoments::Taken& taken);
  Kept Copy() const;

 private:
  void DropBefore(TimePoint time);

  mutable std::mutex mutex_;
  std::vector<std::string> models_;
  std::deque<LiveMoments::Answer> answers_;
  std::deque<LiveMoments::Batch> batches_;
  TimePoint from_ = kNever;
  TimePoint to_ = kStart;
};

}  // namespace tactus
