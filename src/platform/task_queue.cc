#include "platform/task_queue.h"

#include <utility>

#include "platform/cpu_affinity.h"

namespace tactus {

TaskQueue::TaskQueue(std::string name, std::size_t capacity)
    : capacity_(capacity), thread_([this, name = std::move(name)] {
        NameThisThread(name);
        Run();
      }) {}

bool TaskQueue::Post(Task task) {
  {
    std::unique_lock lock(mutex_);
    if (closed_) {
      lock.unlock();
      task(true);
      return true;
    }
    if (tasks_.size() >= capacity_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void TaskQueue::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

void TaskQueue::Stop() {
  Close();
  if (thread_.joinable()) thread_.join();
}

void TaskQueue::Run() {
  for (;;) {
    Task task;  // what it owns goes without the lock
    bool refused = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      refused = closed_;
    }
    task(refused);
  }
}

}  // namespace tactus
