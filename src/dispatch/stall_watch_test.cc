// A reserve for stalls costs every request some accuracy: it must be there when stalls are a part
// of the time that hurts, as long as they are, and gone when they are.
#include "dispatch/stall_watch.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

// Batches of 10 ms, one after the other; each second, if there is a stall, one of them takes
// longer.
TimePoint Serve(StallWatch& watch, TimePoint now, int seconds, Duration stall) {
  const TimePoint end = now + Seconds(seconds);
  TimePoint next = now + Seconds(1);
  while (now < end) {
    Duration took = Millis(10);
    if (now >= next) {
      took += stall;
      next += Seconds(1);
    }
    now += took;
    watch.Learn(Millis(10), took, now);
  }
  return now;
}

TEST(StallWatch, KeepsWhatTheStallsTake) {
  StallWatch watch;
  const TimePoint later = Serve(watch, kStart, 15, Millis(20));
  EXPECT_EQ(watch.reserve(), Millis(20));
  Serve(watch, later, 12, Duration{});
  EXPECT_EQ(watch.reserve(), Duration{});
}

// They are of the machine's spread, which the profile's percentile knows.
TEST(StallWatch, IgnoresWhatIsHardlyLonger) {
  StallWatch watch;
  Serve(watch, kStart, 15, Millis(4));
  EXPECT_EQ(watch.reserve(), Duration{});
}

// 30 ms in 10 s are less than one part in a hundred.
TEST(StallWatch, BearsOneThatIsRare) {
  StallWatch watch;
  TimePoint now = Serve(watch, kStart, 10, Duration{});
  watch.Learn(Millis(10), Millis(30), now);
  EXPECT_EQ(watch.reserve(), Duration{});
}

TEST(StallWatch, ForgetsOverALongSilence) {
  StallWatch watch;
  const TimePoint later = Serve(watch, kStart, 15, Millis(20));
  watch.Learn(Millis(10), Millis(10), later + Seconds(1'000'000));
  EXPECT_EQ(watch.reserve(), Duration{});
}

}  // namespace
}  // namespace tactus
