// One thread that does what others ask of it, in the order in which they ask. It may let what is
// asked gather for a while: then the thread is woken once for all of it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace tactus {

class Loop {
 public:
  using Task = std::function<void()>;

  // `gather`: how long the first of several tasks waits for the others.
  explicit Loop(std::chrono::nanoseconds gather = {}) : gather_(gather) {}

  // From any thread. Nothing after Close.
  void Post(Task task) {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    if (tasks_.size() == 1) come_.notify_one();
  }
  // What was not begun is dropped, and RunUntil returns.
  void Close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    tasks_.clear();
    come_.notify_all();
  }
  // Does all that is asked; waits for more until `until` if nothing is. False: closed. One thread
  // only.
  bool RunUntil(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    come_.wait_until(lock, until, [this] { return closed_ || !tasks_.empty(); });
    if (gather_.count() > 0 && !tasks_.empty()) {
      come_.wait_for(lock, gather_, [this] { return closed_; });
    }
    std::deque<Task> now;
    now.swap(tasks_);
    const bool open = !closed_;
    lock.unlock();
    for (const Task& task : now) task();
    return open;
  }

 private:
  const std::chrono::nanoseconds gather_;
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<Task> tasks_;  // under the mutex
  bool closed_ = false;     // under the mutex
};

}  // namespace tactus
