// Whether the rows of a failed batch are worth running apart. A model that fails whatever it is
// given would else cost a lane a run for each row, again and again.
#pragma once

#include <atomic>

namespace tactus {

// Any thread.
class ApartGate {
 public:
  // Failed batches that are not run apart after one of which no row was answered apart either.
  static constexpr int kSpared = 15;

  // A batch failed: whether to run its rows apart.
  bool Pass() {
    int left = spared_.load(std::memory_order_relaxed);
    while (left > 0) {
      if (spared_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return false;
    }
    return true;
  }
  // Its rows ran apart; whether one of them was answered.
  void Ended(bool helped) { spared_.store(helped ? 0 : kSpared, std::memory_order_relaxed); }

 private:
  std::atomic<int> spared_{0};
};

}  // namespace tactus
