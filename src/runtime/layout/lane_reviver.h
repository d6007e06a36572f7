// Brings lanes back that died under a batch: tries again and again, on threads of its own, which
// wait for the first loss. Then there may be no room for a thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/expected.h"
#include "base/ids.h"
#include "base/serving_time.h"
#include "platform/repeated_task.h"

namespace tactus {

// How long a lane that is lost waits for the next attempt.
class RevivalDelay {
 public:
  RevivalDelay(Duration first, Duration longest)
      : first_(first), longest_(std::max(first, longest)), next_(first) {}

  // It is lost, or the last attempt failed. `lived`: since it came back, the second time it is
  // lost and after; failed attempts lived for no time.
  Duration Next(Duration lived) {
    if (lived >= longest_) next_ = first_;
    return std::exchange(next_, std::min(2 * next_, longest_));
  }

 private:
  Duration first_;
  Duration longest_;
  Duration next_;
};

class LaneReviver {
 public:
  struct Options {
    Duration period = Seconds(1);  // from a loss to the first attempt, and between attempts
    // Where it is longer than `period`: a lane that does not come back, or is lost again within
    // this time, waits twice as long each time, up to this.
    Duration longest = {};
    int threads = 1;  // lanes that are tried at a time: one whose attempt hangs holds up no other
    // Makes the lane new and opens it, or says why not.
    std::function<Status(LaneId)> revive;
    std::function<void(const std::string&)> log;  // empty: nothing is said
  };
  explicit LaneReviver(Options options) : options_(std::move(options)) {}

  // Before the first loss is told.
  void Start();
  // Quick; from any thread.
  void Lost(LaneId lane, const Error& why);
  // No lane comes back from now on. Waits for nothing.
  void Close();
  // The same, and waits for the attempt under way.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  // The next that is due; how long until another is.
  Duration Run();
  void Attempt(LaneId lane, std::unique_lock<std::mutex>& lock);
  void Say(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  const Options options_;
  std::mutex mutex_;
  struct Lane {
    RevivalDelay delay;
    bool lost = false;
    bool busy = false;         // tried just now, on one of the threads
    Clock::time_point due{};   // where it is lost: of the next attempt
    Clock::time_point back{};  // when it came back last
  };
  std::map<LaneId, Lane> lanes_;  // that were ever lost
  bool stop_ = false;
  std::string said_;                  // the last reason why a lane did not come back, once
  std::deque<RepeatedTask> threads_;  // last: they use the others
};

}  // namespace tactus
