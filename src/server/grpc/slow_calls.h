// A thread for calls that may take seconds (loading a model), so that none holds up the threads
// that carry requests and answers. In order of their coming, one at a time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tactus {

class SlowCalls {
 public:
  SlowCalls() : thread_([this](std::stop_token stop) { Run(stop); }) {}
  // Runs what is left, then joins.
  ~SlowCalls();

  void Add(std::function<void()> call);

 private:
  void Run(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> calls_;
  std::jthread thread_;  // last: it uses what stands above
};

}  // namespace tactus
