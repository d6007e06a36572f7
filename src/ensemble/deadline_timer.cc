#include "ensemble/deadline_timer.h"

#include <utility>

namespace tactus {

void DeadlineTimer::Start(std::function<TimePoint()> now) {
  now_ = std::move(now);
  thread_ = std::thread([this] { Wait(); });
}

void DeadlineTimer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  earlier_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DeadlineTimer::At(TimePoint at, std::function<void()> then) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = entries_.empty() || at < entries_.top().at;
    entries_.push({at, next_++, std::move(then)});
  }
  if (first) earlier_.notify_all();
}

void DeadlineTimer::Run(TimePoint now) {
  std::unique_lock lock(mutex_);
  while (!entries_.empty() && entries_.top().at <= now) {
    const std::function<void()> then = entries_.top().then;
    entries_.pop();
    lock.unlock();
    then();
    lock.lock();
  }
}

std::size_t DeadlineTimer::waiting() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void DeadlineTimer::Wait() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (entries_.empty()) {
      earlier_.wait(lock);
      continue;
    }
    const Duration left = entries_.top().at - now_();
    if (left > Duration{}) {
      earlier_.wait_for(lock, left);
      continue;
    }
    lock.unlock();
    Run(now_());
    lock.lock();
  }
}

}  // namespace tactus
