#include "service/loop_delay.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(LoopDelay, IsWhatNineOfTenDidNotExceed) {
  LoopDelay delay;
  EXPECT_EQ(delay.NineOfTen(), nanoseconds(0));
  Rng rng = Rng::Stream(3, "waits");
  // Exponential with a mean of 100 us: nine of ten are below 230.
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    delay.Note(nanoseconds(static_cast<std::int64_t>(rng.Exponential(1e-5))));
    if (i >= 10'000) sum += static_cast<double>(delay.NineOfTen().count());
  }
  EXPECT_NEAR(sum / 10'000, 230e3, 40e3);
}

TEST(LoopDelay, FollowsALoopThatBecomesBusyAndIdleAgain) {
  LoopDelay delay;
  for (int i = 0; i < 1000; ++i) delay.Note(microseconds(10));
  EXPECT_NEAR(static_cast<double>(delay.NineOfTen().count()), 10e3, 2e3);
  for (int i = 0; i < 500; ++i) delay.Note(microseconds(2000));
  EXPECT_GE(delay.NineOfTen(), microseconds(1900));
  for (int i = 0; i < 1000; ++i) delay.Note(microseconds(10));
  EXPECT_LE(delay.NineOfTen(), microseconds(45)) << "four times the mean";
}

}  // namespace
}  // namespace tactus
