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
  // Joins after Refuse.
  ~SlowCalls();

  // `refused`: the server stops, and the call is only to say so.
  using Call = std::function<void(bool refused)>;
  void Add(Call call);
  // Those that wait, and those that come later, are refused; one that runs ends.
  void Refuse();

 private:
  void Run(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Call> calls_;
  bool refused_ = false;
  std::jthread thread_;  // last: it uses what stands above
};

}  // namespace tactus
