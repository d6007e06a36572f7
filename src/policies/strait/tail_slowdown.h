// How much more than predicted its neighbours may cost a batch: the ratio, of what they cost to
// what was predicted, that all batches but the tail's stay within. Not in the paper, whose
// violate() asks whether the expected end is in time: what just passes that is late as often as
// not.
//
// The quantile is learnt at each batch's end, by one step down the gradient of the pinball loss of
// what neighbours cost as a multiple of what was predicted.
#pragma once

#include <algorithm>

namespace tactus {

class TailSlowdown {
 public:
  static constexpr double kMost = 10;

  // 0: no tail; the factor stays 1.
  explicit TailSlowdown(double quantile) : quantile_(quantile) {}

  double factor() const { return factor_; }
  // A batch's degree in the tail where `degree` is expected. Exact where the factor is 1.
  double Of(double degree) const { return degree + (factor_ - 1) * (degree - 1); }
  // Degrees; 1 is alone. Where nothing was expected to be lost nothing is learnt.
  void Learn(double predicted, double actual) {
    const double within = actual - 1 <= factor_ * (predicted - 1) ? 1 : 0;
    factor_ += kRate * (predicted - 1) * (quantile_ - within);
    factor_ = std::clamp(factor_, 1.0, kMost);
  }

 private:
  static constexpr double kRate = 0.2;

  const double quantile_;
  double factor_ = 1;
};

}  // namespace tactus
