// Runs that take far longer than their profile, told on a thread of its own: nothing else bounds
// what an engine does with a graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/serving_time.h"
#include "platform/repeated_task.h"
#include "platform/wall_clock.h"

namespace tactus {

class DispatchTurns;

struct RunWatchOptions {
  // So many times what the profile expects of it is too long for a run, and nothing shorter than
  // `least`: machines stall. 0: no run is ever too long.
  int multiple = 20;
  Duration least = Seconds(5);

  bool on() const { return multiple > 0; }
  Duration Bound(Duration expected) const { return std::max(multiple * expected, least); }
};

// How long a run has been seen to take. From one look to the next no more counts than `most`: where
// more time has passed, the server itself stood still (a paused container, a moved machine), and
// so did the run.
class SeenRun {
 public:
  Duration Age(TimePoint begun, TimePoint last_look, TimePoint now, Duration most) {
    if (begun != begun_) age_ = {};
    begun_ = begun;
    age_ += std::min(now - std::max(begun, last_look), most);
    return age_;
  }

 private:
  TimePoint begun_ = kNever;
  Duration age_{};
};

class RunWatch {
 public:
  // The others outlive it. `log` may be empty.
  RunWatch(RunWatchOptions options, const WallClock& clock, DispatchTurns& loop,
           std::function<void(const std::string&)> log)
      : options_(options), clock_(clock), loop_(loop), log_(std::move(log)) {}

  void Start();
  // Waits for the look under way.
  void Stop() { thread_.Stop(); }

 private:
  void Look(Duration most);

  const RunWatchOptions options_;
  const WallClock& clock_;
  DispatchTurns& loop_;
  const std::function<void(const std::string&)> log_;
  std::vector<TimePoint> told_;  // by worker: when the run that was told of began; kNever: none
  std::vector<SeenRun> seen_;    // by worker
  TimePoint last_look_ = kStart;
  RepeatedTask thread_;  // last: it uses the others
};

}  // namespace tactus
