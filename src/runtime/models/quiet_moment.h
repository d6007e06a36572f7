// Models are loaded and tried beside each other, and measured alone: neighbours would make their
// batches seem slower.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tactus {

// Thread-safe. Nobody waits longer than kLongest, and for a trial that took longer only once, since
// it may never end.
class QuietMoment {
 public:
  static constexpr std::chrono::seconds kLongest{3};

  // While it lives, something runs, or is measured.
  class Turn {
   public:
    explicit Turn(QuietMoment& of, int QuietMoment::*count) : of_(of), count_(count) {}
    ~Turn() {
      {
        const std::lock_guard lock(of_.mutex_);
        --(of_.*count_);
        of_.endless_ = std::min(of_.endless_, of_.tried_);
      }
      of_.changed_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    QuietMoment& of_;
    int QuietMoment::*const count_;
  };

  Turn Try() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLongest, [this] { return measured_ == 0; });
    ++tried_;
    return Turn(*this, &QuietMoment::tried_);
  }
  Turn Measure() {
    std::unique_lock lock(mutex_);
    const bool quiet =
        changed_.wait_for(lock, kLongest, [this] { return measured_ == 0 && tried_ <= endless_; });
    if (!quiet) endless_ = tried_;
    ++measured_;
    return Turn(*this, &QuietMoment::measured_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int tried_ = 0;
  int endless_ = 0;  // of these, those that nobody waits for any more
  int measured_ = 0;
};

}  // namespace tactus
