#include "server/grpc/slow_calls.h"

#include <utility>

namespace tactus {

SlowCalls::~SlowCalls() {
  Refuse();
  thread_.request_stop();
  thread_.join();
}

void SlowCalls::Refuse() {
  std::scoped_lock lock(mutex_);
  refused_ = true;
}

void SlowCalls::Add(Call call) {
  {
    std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
  }
  wake_.notify_one();
}

void SlowCalls::Run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, stop, [this] { return !calls_.empty(); });
    if (calls_.empty()) return;  // stopped
    auto call = std::move(calls_.front());
    calls_.pop_front();
    const bool refused = refused_;
    lock.unlock();
    call(refused);
    call = nullptr;  // what it owns goes without the lock
    lock.lock();
  }
}

}  // namespace tactus
