#include "service/loop_delay.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "service/way_delay.h"

namespace tactus {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(LoopDelay, IsWhatAllButOneOfFortyDidNotExceed) {
  LoopDelay delay;
  EXPECT_EQ(delay.Most(), nanoseconds(0));
  Rng rng = Rng::Stream(3, "waits");
  // Exponential with a mean of 100 us: 39 of 40 are below 369.
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    delay.Note(nanoseconds(static_cast<std::int64_t>(rng.Exponential(1e-5))));
    if (i >= 10'000) sum += static_cast<double>(delay.Most().count());
  }
  EXPECT_NEAR(sum / 10'000, 369e3, 60e3);
}

TEST(LoopDelay, FollowsALoopThatBecomesBusyAndIdleAgain) {
  LoopDelay delay;
  for (int i = 0; i < 1000; ++i) delay.Note(microseconds(10));
  EXPECT_NEAR(static_cast<double>(delay.Most().count()), 10e3, 2e3);
  for (int i = 0; i < 500; ++i) delay.Note(microseconds(2000));
  EXPECT_GE(delay.Most(), microseconds(1900));
  for (int i = 0; i < 1000; ++i) delay.Note(microseconds(10));
  EXPECT_LE(delay.Most(), microseconds(110)) << "ten times the mean";
}

TEST(WayDelay, IsWhatComesToTheBestOfLate) {
  WayDelay far;
  EXPECT_EQ(far.Most(), Duration{});
  for (int i = 0; i < 500; ++i) far.Note(milliseconds(100));
  EXPECT_EQ(far.Most(), Duration{}) << "that a client is far away is no delay";
  for (int i = 0; i < 500; ++i) far.Note(milliseconds(i % 4 == 0 ? 104 : 100));
  EXPECT_NEAR(ToMillis(far.Most()), 4, 1);
}

// It has moved, or its network has.
TEST(WayDelay, ForgetsAWayThatIsNoLongerSoShort) {
  WayDelay way;
  way.Note(milliseconds(1));
  for (int i = 0; i < 100; ++i) way.Note(milliseconds(21));
  EXPECT_GE(ToMillis(way.Most()), 15);
  for (int i = 0; i < 4000; ++i) way.Note(milliseconds(21));
  EXPECT_LE(ToMillis(way.Most()), 0.1);
}

}  // namespace
}  // namespace tactus
