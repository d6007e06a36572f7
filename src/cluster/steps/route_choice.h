// Which of a step's targets gets its next call, and how long one that does not answer is passed
// over. Pure: the instant is a parameter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

// Each target in its turn, as often as its weight says and spread evenly: of weights 2 and 1 the
// calls go 0 1 0, 0 1 0. No chance is in it, so the same calls take the same ways.
class RouteChoice {
 public:
  // Weights above 0 count; where none does, all are alike.
  explicit RouteChoice(std::vector<double> weights) : weights_(std::move(weights)) {
    const bool none = std::ranges::none_of(weights_, [](double each) { return each > 0; });
    if (none) std::ranges::fill(weights_, 1.0);
    credit_.resize(weights_.size(), 0);
  }

  // Among those for which `may` is true; nothing where it is for none. Those that may not keep the
  // place that they have, and are not made up for later.
  std::optional<std::size_t> Next(const std::function<bool(std::size_t)>& may) {
    double total = 0;
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] <= 0 || !may(i)) continue;
      total += weights_[i];
      credit_[i] += weights_[i];
      if (!best || credit_[i] > credit_[*best]) best = i;
    }
    if (best) credit_[*best] -= total;
    return best;
  }

 private:
  std::vector<double> weights_;
  std::vector<double> credit_;
};

// Whether a peer is there: after a call that failed it is passed over, longer each time, as long as
// another target is there. One answer, and it is back.
class PeerStanding {
 public:
  static constexpr Duration kFirstPause = Millis(50);
  static constexpr Duration kLongestPause = Seconds(1);
  // Calls whose time went by at it, one after the other: its host is silent, or it is too slow.
  static constexpr int kSilentAfter = 3;

  bool away(TimePoint now) const { return now < until_; }
  // And has not answered since.
  bool failed() const { return failed_; }
  // Whether this was news.
  bool Failed(TimePoint now) {
    pause_ = pause_ == Duration{} ? kFirstPause : std::min(pause_ * 2, kLongestPause);
    until_ = now + pause_;
    return !std::exchange(failed_, true);
  }
  bool Expired(TimePoint now) { return ++expired_ >= kSilentAfter && Failed(now); }
  bool Answered() {
    pause_ = Duration{};
    until_ = kStart;
    expired_ = 0;
    return std::exchange(failed_, false);
  }

 private:
  TimePoint until_ = kStart;
  Duration pause_{};
  int expired_ = 0;
  bool failed_ = false;
};

}  // namespace tactus
