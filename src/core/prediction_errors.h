// How far predictions were off, counted: relative errors in steps of 0.1 % without an allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace tactus {

class PredictionErrors {
 public:
  // Both above 0.
  void Add(double predicted, double actual) {
    const double relative = std::abs(predicted - actual) / actual;
    const double step = std::min(relative / kStep, static_cast<double>(kSteps - 1));
    ++counts_[static_cast<std::size_t>(step)];
    ++count_;
  }
  std::int64_t count() const { return count_; }

  // The upper end of the step that holds the error which `p` percent of them do not exceed, as a
  // fraction (0.25 is 25 %); 0 for none. Errors beyond 400 % count as 400 %.
  double Percentile(double p) const {
    const auto rank = static_cast<std::int64_t>(std::ceil(p / 100 * static_cast<double>(count_)));
    std::int64_t below = 0;
    for (std::size_t i = 0; i < kSteps && count_ > 0; ++i) {
      below += counts_[i];
      if (below >= rank) return kStep * static_cast<double>(i + 1);
    }
    return 0;
  }

 private:
  static constexpr double kStep = 0.001;
  static constexpr std::size_t kSteps = 4000;
  std::array<std::int64_t, kSteps> counts_{};
  std::int64_t count_ = 0;
};

}  // namespace tactus
