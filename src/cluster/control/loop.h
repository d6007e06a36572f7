// One thread that does what others ask of it, in the order in which they ask.
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

  // From any thread. Nothing after Close.
  void Post(Task task) {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    come_.notify_one();
  }
  // What was not begun is dropped, and RunUntil returns.
  void Close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    tasks_.clear();
    come_.notify_all();
  }
  // Does all that is asked; waits for more until `until` if nothing is. False: closed.
  bool RunUntil(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    come_.wait_until(lock, until, [this] { return closed_ || !tasks_.empty(); });
    std::deque<Task> now;
    now.swap(tasks_);
    const bool open = !closed_;
    lock.unlock();
    for (const Task& task : now) task();
    return open;
  }

 private:
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<Task> tasks_;  // under the mutex
  bool closed_ = false;     // under the mutex
};

}  // namespace tactus
