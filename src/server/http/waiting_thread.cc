#include "server/http/waiting_thread.h"

#include <utility>

namespace tactus {

bool WaitingThread::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || tasks_.size() == capacity_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WaitingThread::Refuse() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
}

void WaitingThread::Stop() {
  Refuse();
  if (thread_.joinable()) thread_.join();
}

void WaitingThread::Run() {
  for (;;) {
    Task task;
    bool refused = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      refused = stopped_;
    }
    task(refused);
  }
}

}  // namespace tactus
