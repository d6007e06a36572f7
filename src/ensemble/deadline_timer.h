// Calls back at deadlines. A thread of its own waits for them; where time is a test's, the test
// says when it is.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

class DeadlineTimer {
 public:
  ~DeadlineTimer() { Stop(); }

  // Waits for deadlines from now on; `now` reads the clock that they are of.
  void Start(std::function<TimePoint()> now);
  void Stop();

  // `then` is called once, at `at` or soon after, on the timer's thread; never if it is stopped
  // before.
  void At(TimePoint at, std::function<void()> then);
  // Calls back all that is due.
  void Run(TimePoint now);
  std::size_t waiting() const;

 private:
  struct Entry {
    TimePoint at;
    std::uint64_t number = 0;  // those of one instant in the order in which they came
    std::function<void()> then;
    bool operator<(const Entry& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  void Wait();

  mutable std::mutex mutex_;
  std::condition_variable earlier_;
  std::priority_queue<Entry> entries_;
  std::uint64_t next_ = 0;
  bool stop_ = false;
  std::function<TimePoint()> now_;
  std::thread thread_;
};

}  // namespace tactus
