// One thread for calls that may take seconds, in the order in which they were asked for.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tactus {

class WaitingThread {
 public:
  // `refused`: the thread ends, and the task is only to say so.
  using Task = std::move_only_function<void(bool refused)>;

  explicit WaitingThread(std::size_t capacity) : capacity_(capacity), thread_([this] { Run(); }) {}
  ~WaitingThread() { Stop(); }

  // False when it is full or stopped; the task is then dropped.
  bool Post(Task task);
  // Tasks that wait, and later ones, are refused. Returns at once.
  void Refuse();
  // Ends after the task that runs; those that wait are refused. Idempotent; not from the thread
  // itself.
  void Stop();

 private:
  void Run();

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace tactus
