// Calls back at deadlines. A thread of its own waits for them; where time is a test's, the test
// says when it is.
#pragma once

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/serving_time.h"

namespace tactus {

class DeadlineTimer {
 public:
  ~DeadlineTimer() { Stop(); }

  // Waits for deadlines from now on; `now` reads the clock that they are of.
  void Start(std::function<TimePoint()> now);
  void Stop();

  // What waits for an instant: that, and its place among those of the same one. Number 0: nothing.
  struct Key {
    TimePoint at;
    std::uint64_t number = 0;

    auto operator<=>(const Key&) const = default;
  };
  // `then` is called once, at `at` or soon after, on the timer's thread; never if it is stopped or
  // cancelled before.
  Key At(TimePoint at, std::function<void()> then);
  // Lets go of what waits, unless it was called back; it may be at this moment.
  void Cancel(const Key& key);
  // Calls back all that is due.
  void Run(TimePoint now);
  std::size_t waiting() const;

 private:
  void Wait();

  mutable std::mutex mutex_;
  std::condition_variable earlier_;
  std::map<Key, std::function<void()>> entries_;
  std::uint64_t next_ = 1;
  bool stop_ = false;
  std::function<TimePoint()> now_;
  std::thread thread_;
};

}  // namespace tactus
