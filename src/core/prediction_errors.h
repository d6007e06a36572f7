// How far predictions were off, counted: ratios in steps of 0.1 % without an allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tactus {

// Ratios as fractions (0.25 is 25 %), from -1 to 9; what is beyond counts as the end.
class RatioCounts {
 public:
  void Add(double ratio) {
    const double step = std::clamp(std::floor(ratio / kStep), -kBelow, kAbove - 1);
    ++counts_[static_cast<std::size_t>(step + kBelow)];
    ++count_;
  }
  std::int64_t count() const { return count_; }

  // The upper end of the step that holds the ratio which `p` percent of them do not exceed; 0 for
  // none.
  double Percentile(double p) const {
    std::int64_t below = 0;
    for (std::size_t i = 0; i < counts_.size() && count_ > 0; ++i) {
      below += counts_[i];
      if (below >= Rank(p)) return kStep * (static_cast<double>(i + 1) - kBelow);
    }
    return 0;
  }
  // The same of the ratios without their signs.
  double AbsolutePercentile(double p) const {
    constexpr auto kZero = static_cast<std::size_t>(kBelow);
    std::int64_t below = 0;
    for (std::size_t i = 0; kZero + i < counts_.size() && count_ > 0; ++i) {
      below += counts_[kZero + i] + (i < kZero ? counts_[kZero - 1 - i] : 0);
      if (below >= Rank(p)) return kStep * static_cast<double>(i + 1);
    }
    return 0;
  }

 private:
  static constexpr double kStep = 0.001;
  static constexpr double kBelow = 1000;  // steps under 0 ...
  static constexpr double kAbove = 9000;  // ... and over it

  std::int64_t Rank(double p) const {
    return static_cast<std::int64_t>(std::ceil(p / 100 * static_cast<double>(count_)));
  }

  std::array<std::int64_t, static_cast<std::size_t>(kBelow + kAbove)> counts_{};
  std::int64_t count_ = 0;
};

// What was predicted of a batch's kernels and what came, each over their profiled time.
struct Prediction {
  double predicted = 0;
  double actual = 0;
};

// How far predictions were off for batches that had neighbours.
struct PredictionErrors {
  RatioCounts kernel;    // (predicted - actual) / actual, of the kernels' time
  RatioCounts latency;   // the same of the whole: waiting, link and kernels
  RatioCounts overhead;  // what the neighbours cost: actual kernel time over the profiled, less 1
  Prediction newest;     // of those that `kernel` counts
};

}  // namespace tactus
