// Waits for the engine's answer to one batch: for those who measure, not for those who serve.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "core/engine.h"

namespace tactus {

class OneAnswer final : public Completions {
 public:
  // Notifies under the lock: the waiter may destroy this as soon as it has the answer.
  void Done(BatchId, BatchResult&& result) noexcept override {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    answered_.notify_one();
  }
  // Blocks; once.
  BatchResult Wait() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [&] { return result_.has_value(); });
    return *std::move(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<BatchResult> result_;
};

}  // namespace tactus
