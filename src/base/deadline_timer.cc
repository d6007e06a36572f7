#include "base/deadline_timer.h"

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

DeadlineTimer::Key DeadlineTimer::At(TimePoint at, std::function<void()> then) {
  Key key;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    key = {at, next_++};
    const auto added = entries_.emplace(key, std::move(then)).first;
    first = added == entries_.begin();  // not in one line: begin() could be asked for before
  }
  if (first) earlier_.notify_all();
  return key;
}

void DeadlineTimer::Cancel(const Key& key) {
  if (key.number == 0) return;
  const std::lock_guard lock(mutex_);
  entries_.erase(key);
}

void DeadlineTimer::Run(TimePoint now) {
  std::unique_lock lock(mutex_);
  while (!entries_.empty() && entries_.begin()->first.at <= now) {
    const auto due = entries_.extract(entries_.begin());
    lock.unlock();
    due.mapped()();
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
    const Duration left = entries_.begin()->first.at - now_();
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
