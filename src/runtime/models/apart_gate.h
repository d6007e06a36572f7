// Whether the rows of a failed batch are worth running apart. A model that fails whatever it is
// given would else cost a lane a run for each row, again and again.
#pragma once

#include <atomic>

#include "base/serving_time.h"

namespace tactus {

// Any thread.
class ApartGate {
 public:
  // Where nothing of the model has succeeded for kHopeful, the rows of one failed batch in kEach
  // run apart. A client that sends nothing but bad rows must not get there for others, whose good
  // ones come in between.
  static constexpr Duration kHopeful = Seconds(10);
  static constexpr unsigned kEach = 16;

  // A batch failed: whether to run its rows apart.
  bool Pass(TimePoint now) {
    TimePoint since = failing_since_.load(std::memory_order_relaxed);
    if (since == kNever) {
      failing_since_.store(now, std::memory_order_relaxed);
      since = now;
    }
    if (now - since < kHopeful) return true;
    return failed_.fetch_add(1, std::memory_order_relaxed) % kEach == 0;
  }
  // A batch was answered, or a row that ran apart.
  void Succeeded() {
    if (failing_since_.load(std::memory_order_relaxed) == kNever) return;
    failing_since_.store(kNever, std::memory_order_relaxed);
  }

 private:
  std::atomic<TimePoint> failing_since_{kNever};
  std::atomic<unsigned> failed_{0};
};

}  // namespace tactus
