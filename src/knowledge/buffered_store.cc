#include "knowledge/buffered_store.h"

#include <algorithm>
#include <utility>

namespace tactus::knowledge {
namespace {

// Writing it again will not help.
bool IsRefusal(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kAlreadyExists ||
         code == ErrorCode::kNotFound;
}

}  // namespace

BufferedStore::BufferedStore(std::unique_ptr<StoreWriter> store, std::uint64_t term,
                             const BufferLimits& limits, const RetryPause& pause)
    : store_(std::move(store)),
      term_(term),
      pause_(pause),
      buffer_(limits),
      next_pause_(pause.first),
      thread_([this] { Run(); }) {}

BufferedStore::~BufferedStore() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BufferedStore::Write(Batch batch, UtcTime now) {
  batch.term = term_;
  {
    const std::lock_guard lock(mutex_);
    buffer_.Add(std::move(batch), now);
    if (counts_.superseded) buffer_.Clear();
  }
  changed_.notify_all();
}

void BufferedStore::Retain(UtcTime now, const Retention& limits) {
  {
    const std::lock_guard lock(mutex_);
    errand_ = Errand{now, limits};
  }
  changed_.notify_all();
}

bool BufferedStore::Flush(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [&] { return buffer_.batches() == 0 && !busy_; });
}

BufferedStore::Counts BufferedStore::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.waiting = buffer_.batches();
  counts.dropped = buffer_.dropped();
  return counts;
}

void BufferedStore::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || buffer_.batches() > 0 || errand_; });
    if (ending_) return;
    busy_ = true;
    if (buffer_.batches() > 0) {
      WriteOldest(lock);
    } else {
      RunErrand(lock);
    }
    busy_ = false;
    changed_.notify_all();
  }
}

void BufferedStore::WriteOldest(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<const Batch> batch = buffer_.Oldest();
  lock.unlock();
  const Expected<Written> written = store_->Commit(*batch);
  lock.lock();
  if (written) {
    counts_.written += batch->records();
    counts_.last_error.clear();
    next_pause_ = pause_.first;
    buffer_.Remove();
    return;
  }
  counts_.last_error = written.error().message;
  if (IsRefusal(written.error().code)) {
    counts_.refused += batch->records();
    buffer_.Remove();
  } else if (written.error().code == ErrorCode::kCancelled) {
    counts_.superseded = true;
    buffer_.Clear();
  } else {
    PauseForRetry(lock);
  }
}

void BufferedStore::RunErrand(std::unique_lock<std::mutex>& lock) {
  const Errand errand = *std::exchange(errand_, std::nullopt);
  lock.unlock();
  const Expected<Retained> retained = store_->Retain(errand.now, errand.limits);
  lock.lock();
  if (!retained) {
    counts_.last_error = retained.error().message;
  } else if (!retained->done && !errand_) {
    errand_ = errand;  // the rest, after what is to be written
  }
}

void BufferedStore::PauseForRetry(std::unique_lock<std::mutex>& lock) {
  const auto pause = std::exchange(next_pause_, std::min(next_pause_ * 2, pause_.most));
  changed_.wait_for(lock, pause, [&] { return ending_; });
}

}  // namespace tactus::knowledge
