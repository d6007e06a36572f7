// How many connections are told why they are refused.
#pragma once

#include <chrono>

namespace tactus {

// An answer costs more than a close, so answering all of a flood would delay the other clients.
class ToldRefusals {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr int kEachSecond = 100;

  // Whether one more may be told at `now`, which does not run backwards.
  bool Take(Clock::time_point now) {
    if (now - since_ >= std::chrono::seconds(1)) {
      since_ = now;
      told_ = 0;
    }
    return told_++ < kEachSecond;
  }

 private:
  Clock::time_point since_{};
  int told_ = 0;
};

}  // namespace tactus
