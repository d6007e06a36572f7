#include "server/http/decode_threads.h"

#include <utility>

namespace tactus {

DecodeThreads::DecodeThreads(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { Run(i); });
}

DecodeThreads::~DecodeThreads() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void DecodeThreads::Add(const std::string& client, Task task) {
  {
    const std::scoped_lock lock(mutex_);
    std::deque<Task>& waiting = tasks_[client];
    if (waiting.empty()) turns_.push_back(client);
    waiting.push_back(std::move(task));
  }
  changed_.notify_one();
}

void DecodeThreads::Run(std::size_t thread) {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !turns_.empty(); });
      if (turns_.empty()) return;
      std::string client = std::move(turns_.front());
      turns_.pop_front();
      const auto mine = tasks_.find(client);
      task = std::move(mine->second.front());
      mine->second.pop_front();
      if (mine->second.empty()) {
        tasks_.erase(mine);
      } else {
        turns_.push_back(std::move(client));
      }
    }
    task(thread);
  }
}

}  // namespace tactus
