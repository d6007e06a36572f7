// How far predictions were off, counted: ratios in steps of 0.1 % without an allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

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

// What was predicted and what came, of the last kKept, for a picture.
class LatestPredictions {
 public:
  static constexpr std::size_t kKept = 4096;
  struct Prediction {
    float predicted = 0;
    float actual = 0;
  };

  void Add(double predicted, double actual) {
    kept_[count_++ % kKept] = {static_cast<float>(predicted), static_cast<float>(actual)};
  }
  // How many there have been, kept or not.
  std::size_t count() const { return count_; }
  // There has been one.
  const Prediction& newest() const { return kept_[(count_ - 1) % kKept]; }
  // In no order.
  std::span<const Prediction> get() const {
    return std::span(kept_).first(std::min(kKept, count_));
  }

 private:
  std::array<Prediction, kKept> kept_{};
  std::size_t count_ = 0;
};

// Of batches that had neighbours.
struct PredictionErrors {
  RatioCounts kernel;    // (predicted - actual) / actual, of the kernels' time
  RatioCounts latency;   // the same of the whole: waiting, link and kernels
  RatioCounts overhead;  // what the neighbours cost: actual kernel time over the profiled, less 1
  LatestPredictions latest;  // degrees: kernel time over the profiled
};

}  // namespace tactus
