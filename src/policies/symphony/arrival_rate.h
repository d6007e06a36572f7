// How many requests of a model come in a second: a moving window, in ten steps, over its arrivals.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/serving_time.h"

namespace tactus {

// The rate changes only when an arrival opens a new step, never by the mere passing of time, so
// what is derived from it stays exact between two events.
class ArrivalRate {
 public:
  ArrivalRate() : ArrivalRate(Seconds(1)) {}
  explicit ArrivalRate(Duration window) : step_(window / kSteps) {}

  // An arrival; instants do not fall. True when per_second() is new.
  bool Count(TimePoint at) {
    if (at < step_end_) {
      ++current_;
      return false;
    }
    Roll(at);
    return true;
  }
  // Over the window's complete steps; 0 before there is one.
  double per_second() const { return per_second_; }

 private:
  static constexpr std::int64_t kSteps = 10;

  void Roll(TimePoint at) {
    const std::int64_t step = (at - kStart) / step_;
    if (first_step_ < 0) first_step_ = step;
    for (std::int64_t s = std::max(at_step_, step - kSteps); at_step_ >= 0 && s < step; ++s) {
      counts_[s % kSteps] = s == at_step_ ? current_ : 0;
    }
    // The step of the first arrival had begun before it, so it is left out.
    const std::int64_t complete = std::min<std::int64_t>(kSteps, step - first_step_ - 1);
    std::int64_t sum = 0;
    for (std::int64_t i = 1; i <= complete; ++i) sum += counts_[(step - i) % kSteps];
    per_second_ = complete > 0 ? static_cast<double>(sum) / (complete * ToSeconds(step_)) : 0;
    at_step_ = step;
    step_end_ = kStart + (step + 1) * step_;
    current_ = 1;
  }

  Duration step_;
  std::array<std::int64_t, kSteps> counts_{};  // of complete steps, by step modulo kSteps
  std::int64_t first_step_ = -1;
  std::int64_t at_step_ = -1;
  TimePoint step_end_{Duration::min()};
  std::int64_t current_ = 0;
  double per_second_ = 0;
};

}  // namespace tactus
