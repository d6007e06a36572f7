// The calls and batches of the last minute in which somebody watched: what a "what if" is asked of.
#pragma once

#include <chrono>
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
  using Clock = std::chrono::steady_clock;
  static constexpr Duration kKept = Seconds(60);
  static constexpr Duration kLeast = Seconds(3);         // that says something
  static constexpr Duration kRemembered = Seconds(600);  // after nobody watched any more
  // Of calls, and as many of batches: the oldest go, and the minute is shorter.
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  struct Kept {
    std::vector<std::string> models;           // by number
    std::vector<LiveMoments::Answer> answers;  // in the order in which they were noted
    std::vector<LiveMoments::Batch> batches;
    TimePoint from;  // all that ended from here on is kept ...
    TimePoint to;    // ... until here; equal: nothing is
    Duration ago{};  // since it was seen
  };

  // All of this from any thread.
  // Somebody watches again. What was seen before stays until there are kLeast of what comes.
  void Begin();
  // Where some was lost, what was before is too: the load is not known.
  void Add(const LiveMoments::Taken& taken, Clock::time_point now);
  // What was seen longer ago than kRemembered.
  void Forget(Clock::time_point now);
  Kept Copy(Clock::time_point now) const;

 private:
  struct Part {
    std::deque<LiveMoments::Answer> answers;
    std::deque<LiveMoments::Batch> batches;
    TimePoint from = kNever;
    TimePoint to = kStart;
    Clock::time_point seen;

    void DropBefore(TimePoint time);
    Duration length() const { return to > from ? to - from : Duration{}; }
  };

  mutable std::mutex mutex_;
  std::vector<std::string> models_;
  Part now_;     // of those who watch
  Part before_;  // of those who watched before them
};

}  // namespace tactus
