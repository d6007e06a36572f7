// Runs that take far longer than their profile, told on a thread of its own: nothing else bounds
// what an engine does with a graph.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/serving_time.h"
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

class RunWatch {
 public:
  // The others outlive it. `log` may be empty.
  RunWatch(RunWatchOptions options, const WallClock& clock, DispatchTurns& loop,
           std::function<void(const std::string&)> log)
      : options_(options), clock_(clock), loop_(loop), log_(std::move(log)) {}
  ~RunWatch() { Stop(); }

  void Start();
  // Waits for the look under way.
  void Stop();

 private:
  void Run();
  void Look();

  const RunWatchOptions options_;
  const WallClock& clock_;
  DispatchTurns& loop_;
  const std::function<void(const std::string&)> log_;
  std::vector<TimePoint> told_;  // by worker: when the run that was told of began; kNever: none
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tactus
