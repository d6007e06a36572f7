#include "server/net/decode_threads.h"

#include <utility>

namespace tactus {

DecodeThreads::DecodeThreads(std::size_t threads) {
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { Run(i); });
  } catch (...) {  // there is no room for a thread
    Stop();
    throw;
  }
}

DecodeThreads::~DecodeThreads() { Stop(); }

void DecodeThreads::Stop() {
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
    tasks_.Add(client, std::move(task));
  }
  changed_.notify_one();
}

void DecodeThreads::Run(std::size_t thread) {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = tasks_.Take();
    }
    task(thread);
  }
}

}  // namespace tactus
