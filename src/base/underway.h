// Calls that somebody else ends, each from a thread of its choosing: kept alive until then, all of
// them within reach, and the last one waited for.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tactus {

// Thread-safe.
template <class Call>
class Underway {
 public:
  void Add(std::shared_ptr<Call> call) {
    const std::lock_guard lock(mutex_);
    ++count_;
    Call* const key = call.get();
    calls_.emplace(key, std::move(call));
  }

  // Once for each call: nobody touches it any more. It is freed without the lock, since that may
  // run whatever else there is, and before it counts as ended, so that nothing of it is left when
  // Wait returns.
  void End(Call* call) {
    std::shared_ptr<Call> ended;
    {
      const std::lock_guard lock(mutex_);
      const auto place = calls_.find(call);
      ended = std::move(place->second);
      calls_.erase(place);
    }
    ended.reset();
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  // The calls that have not ended.
  std::vector<std::shared_ptr<Call>> all() const {
    std::vector<std::shared_ptr<Call>> found;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, call] : calls_) found.push_back(call);
    return found;
  }

  // Until all have ended.
  void Wait() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::unordered_map<Call*, std::shared_ptr<Call>> calls_;
  std::size_t count_ = 0;  // added, and not yet freed
};

}  // namespace tactus
