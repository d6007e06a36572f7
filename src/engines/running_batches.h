// The batches that run now and how to stop each: Terminate comes from another thread than the one
// that runs the batch, and may come just as the batch ends.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/ids.h"

namespace tactus {

// `Stop` is a callable that outlives its place here; it runs under the lock, so it must be short.
template <class Stop>
class RunningBatches {
 public:
  class Running {
   public:
    Running(RunningBatches& owner, BatchId id, Stop& stop) : owner_(owner), id_(id) {
      std::lock_guard lock(owner_.mutex_);
      owner_.running_.push_back({id, &stop});
    }
    ~Running() {
      std::lock_guard lock(owner_.mutex_);
      std::erase_if(owner_.running_, [&](const Entry& entry) { return entry.id == id_; });
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    RunningBatches& owner_;
    const BatchId id_;
  };

  // After this returns the batch's Stop has run, or the batch is not running.
  void Terminate(BatchId id) {
    std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(running_.begin(), running_.end(), [&](const Entry& e) { return e.id == id; });
    if (found != running_.end()) (*found->stop)();
  }

 private:
  struct Entry {
    BatchId id;
    Stop* stop;
  };
  std::mutex mutex_;
  std::vector<Entry> running_;  // as many as there are lane slots
};

}  // namespace tactus
