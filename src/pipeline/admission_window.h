// How many requests of a pipeline may be under way at once. Past what can be sustained, work on a
// request that is lost behind its first stage is in vain; to refuse another one as it comes costs
// nothing. So the window closes a little with each that was lost there for want of time; at once to
// twice what was answered while the lost one was under way, since the machine sustains no more;
// never below what was in time meanwhile, however many are lost together. It opens with each that
// was in time while it was half full or more. Nothing is refused before the first such loss.
//
// Of calls whose bodies are read it is the same (pipeline/body_gate.h), but what is lost costs
// less.
//
// Pure and deterministic: no clock, no chance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tactus {

class AdmissionWindow {
 public:
  enum class End {
    kInTime,
    kInPart,   // answered in time, but for a part that was lost for want of time
    kInVain,   // lost behind its first stage for want of time, or late
    kNeither,  // of which nothing is learned: cancelled, failed, refused before any work was done
  };
  // What a request keeps while it is inside.
  struct Place {
    int inside = 0;              // with it; 0: it is not
    std::uint64_t answered = 0;  // until then, in time or in part
    std::uint64_t in_time = 0;   // of those
  };

  struct Rule {
    double least = 2;  // inside, whatever is lost
    // With each loss. At balance one in nine or so is lost in vain: to refuse so many more that
    // hardly any is lost would leave lanes idle and batches small.
    double closes = 0.5;
  };

  AdmissionWindow() = default;
  explicit AdmissionWindow(Rule rule) : rule_(rule) {}

  bool IsFull() const { return inside_ >= most_; }
  Place Enter() { return {++inside_, answered_, in_time_}; }
  // `stayed`: for how much of the SLO it was under way, above 0.
  void Leave(const Place& place, End end, double stayed) {
    const int met = std::max(place.inside, inside_);
    --inside_;
    answered_ += end == End::kInTime || end == End::kInPart ? 1 : 0;
    in_time_ += end == End::kInTime ? 1 : 0;
    if (end == End::kInVain || end == End::kInPart) {
      // While the lost one was under way, or had it stayed for the whole SLO.
      const double slo = std::clamp(stayed, kShortest, 1.0);
      const double answered = static_cast<double>(answered_ - place.answered) / slo;
      const double in_time = static_cast<double>(in_time_ - place.in_time) / slo;
      // Losses that came when few were inside were not for their number.
      const double room = kRoom * std::min<double>(met, answered);
      most_ =
          std::min(most_, std::max({rule_.least, in_time, std::min(most_, room) - rule_.closes}));
      streak_ = 0;
    }
    if (end != End::kInTime) return;
    ++streak_;
    if (kRoom * place.inside >= most_) most_ += kOpens * (1 + kFaster * streak_ / most_);
  }

 private:
  static constexpr double kOpens = 0.05;
  static constexpr double kRoom = 2;
  static constexpr double kShortest = 0.1;
  // What was lost while the machine stood still for a moment is soon forgotten: the window opens
  // faster the longer nothing is lost.
  static constexpr double kFaster = 0.3;

  Rule rule_;
  int inside_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t in_time_ = 0;
  double streak_ = 0;  // in time since the last that was lost
  double most_ = std::numeric_limits<double>::infinity();
};

}  // namespace tactus
