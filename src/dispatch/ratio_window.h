// The ratios of measured to profiled time of a model's last batches on one lane class, and what
// they say: the quantile that the profile is of, robust against outliers.
//
// A profile's P95 holds as long as one batch in twenty exceeds it. So the answer is the least ratio
// that at most six of the last 128 batches exceeded: 1 while the machine is as profiled, whatever
// the spread, and no outlier moves it. Luck alone lets ten exceed it now and then; that the machine
// is slower is believed when sixteen do (the slow sign), or the last seven in a row (the fast one).
// The window begins full of ratios of 1.
//
// Integers throughout, but for one division a batch: the same batches give the same answer on every
// machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/serving_time.h"

namespace tactus {

// Ratios in steps of 2 %, from a half to four; a step stands for all ratios from the one below it
// up to its own. What lies beyond counts as the end.
class RatioSteps {
 public:
  static constexpr int kOne = 35;  // the step of exactly 1
  static constexpr int kSteps = 106;

  static constexpr double Ratio(int step) { return kRatios[static_cast<std::size_t>(step)]; }
  static int Of(Duration took, Duration profiled) {
    if (profiled <= Duration{}) return kOne;
    const double ratio = static_cast<double>(took.count()) / static_cast<double>(profiled.count());
    const auto at = std::lower_bound(kRatios.begin(), kRatios.end() - 1, ratio);
    return static_cast<int>(at - kRatios.begin());
  }

 private:
  static constexpr std::array<double, kSteps> kRatios = [] {
    std::array<double, kSteps> ratios{};
    ratios[kOne] = 1;
    for (int i = kOne + 1; i < kSteps; ++i) ratios[i] = ratios[i - 1] * 1.02;
    for (int i = kOne - 1; i >= 0; --i) ratios[i] = ratios[i + 1] / 1.02;
    return ratios;
  }();
};

class RatioWindow {
 public:
  static constexpr int kBatches = 128;

  // When a percentile of the profile holds, of a window of kBatches.
  struct Rule {
    int exceeding;  // so many may lie above it
    int many;       // so many lie above it by luck hardly ever
    int in_a_row;   // nor so many, one after the other
  };
  static constexpr Rule RuleOf(double percentile) {
    if (percentile >= 99) return {2, 8, 5};  // one would be enough, but for outliers
    if (percentile >= 95) return {6, 16, 7};
    // Where times are skewed as service times are, fewer than half exceed their mean.
    return percentile > 0 ? Rule{64, 87, 27} : Rule{54, 77, 21};
  }

  explicit RatioWindow(Rule rule) : rule_(rule) {
    ring_.fill(RatioSteps::kOne);
    counts_[RatioSteps::kOne] = kBatches;
  }

  void Push(int step) {
    const int oldest = ring_[next_];
    ring_[next_] = static_cast<std::uint8_t>(step);
    next_ = static_cast<std::uint8_t>((next_ + 1) % kBatches);
    --counts_[oldest];
    ++counts_[step];
    over_one_ += (step > RatioSteps::kOne) - (oldest > RatioSteps::kOne);
    in_a_row_ = step > RatioSteps::kOne ? in_a_row_ + 1 : 0;
    above_ += (step > answer_) - (oldest > answer_);
    while (above_ > rule_.exceeding) above_ -= counts_[++answer_];
    while (answer_ > 0 && above_ + counts_[answer_] <= rule_.exceeding)
      above_ += counts_[answer_--];
  }

  // A step of RatioSteps.
  int answer() const { return answer_; }
  // An answer above 1 is more than luck.
  bool slower() const { return over_one_ >= rule_.many || in_a_row_ >= rule_.in_a_row; }

 private:
  Rule rule_;
  int answer_ = RatioSteps::kOne;
  int above_ = 0;     // of the window, above the answer
  int over_one_ = 0;  // of the window, above 1
  int in_a_row_ = 0;  // the newest ones above 1
  std::uint8_t next_ = 0;
  std::array<std::uint8_t, kBatches> ring_{};
  std::array<std::uint8_t, RatioSteps::kSteps> counts_{};
};

}  // namespace tactus
