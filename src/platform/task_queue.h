// One thread that does what others ask for, in the order in which they ask: what may take seconds
// holds up nobody else.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>

namespace tactus {

class TaskQueue {
 public:
  // `refused`: the queue is closed, and the task is only to say so.
  using Task = std::move_only_function<void(bool refused)>;

  // The thread has the first 15 characters of the name. At most `capacity` tasks wait.
  explicit TaskQueue(std::string name,
                     std::size_t capacity = std::numeric_limits<std::size_t>::max());
  ~TaskQueue() { Stop(); }

  // False when it is full; the task is then dropped. Where it is closed, the task is refused at
  // once, on this thread.
  bool Post(Task task);
  // Tasks that wait, and later ones, are refused. Returns at once.
  void Close();
  // Close, and waits for the task that runs and those that are refused. Idempotent; not from the
  // thread itself.
  void Stop();

 private:
  void Run();

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool closed_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tactus
