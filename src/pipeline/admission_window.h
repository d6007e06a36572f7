// How many requests of a pipeline may be under way at once. Past what can be sustained, work on a
// request that is lost behind its first stage is in vain; to refuse another one as it comes costs
// nothing. So the window closes with each that was lost there for want of time, and opens with each
// that was in time while it was half full or more. Nothing is refused before the first such loss.
//
// Pure and deterministic: no clock, no chance.
#pragma once

#include <algorithm>
#include <limits>

namespace tactus {

class AdmissionWindow {
 public:
  enum class End {
    kInTime,
    kInVain,   // lost behind its first stage for want of time, or late, in whole or in part
    kNeither,  // of which nothing is learned: cancelled, failed, refused before any work was done
  };

  bool IsFull() const { return inside_ >= most_; }
  // How many are inside then, this one included; Leave asks for it.
  int Enter() { return ++inside_; }
  void Leave(int entered, End end) {
    // Losses that came when few were inside were not for their number.
    const int met = std::max(entered, inside_);
    --inside_;
    if (end == End::kInVain) {
      most_ = std::max(kLeast, std::min(most_, kRoom * met) - kCloses);
      streak_ = 0;
    }
    if (end != End::kInTime) return;
    ++streak_;
    if (kRoom * entered >= most_) most_ += kOpens * (1 + kFaster * streak_ / most_);
  }

 private:
  // At balance one in nine or so is lost in vain: to refuse so many more that hardly any is lost
  // would leave lanes idle and batches small.
  static constexpr double kCloses = 0.5;
  static constexpr double kOpens = 0.05;
  static constexpr double kRoom = 2;
  // What was lost while the machine stood still for a moment is soon forgotten: the window opens
  // faster the longer nothing is lost, and never is so small that one lane's batches are of one.
  static constexpr double kFaster = 0.3;
  static constexpr double kLeast = 4;

  int inside_ = 0;
  double streak_ = 0;  // in time since the last that was lost in vain
  double most_ = std::numeric_limits<double>::infinity();
};

}  // namespace tactus
