// A thread that does one thing again and again: after each pause, and at once when it is woken.
//
//   RepeatedTask sampler("sampler", Every(Seconds(1), [&] { Sample(); }));
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/serving_time.h"

namespace tactus {

// Returns after `time`, or at once when a stop comes; whether none came.
bool SleepUnlessStopped(Duration time, const std::stop_token& stop);

class RepeatedTask {
 public:
  // One run; how long the pause is after it.
  using Run = std::move_only_function<Duration()>;
  // No run until Wake; so is every pause of more than a year.
  static constexpr Duration kUntilWoken = Duration::max();

  RepeatedTask() = default;
  RepeatedTask(std::string name, Run run, Duration first = {}) {
    Start(std::move(name), std::move(run), first);
  }
  ~RepeatedTask() { Stop(); }
  RepeatedTask(const RepeatedTask&) = delete;
  RepeatedTask& operator=(const RepeatedTask&) = delete;

  // Once. The thread, of which the name keeps 15 characters, begins with a pause of `first`.
  void Start(std::string name, Run run, Duration first = {});
  // Begins a run now, or after the one that is under way. From any thread, also before Start.
  void Wake();
  // Waits for the run under way; there is none after. Not from the run itself. Idempotent.
  void Stop();

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool woken_ = false;
  std::jthread thread_;  // last: it uses the others
};

// Runs with the same pause after each.
RepeatedTask::Run Every(Duration period, std::move_only_function<void()> run);

}  // namespace tactus
