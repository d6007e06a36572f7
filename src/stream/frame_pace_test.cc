#include "stream/frame_pace.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

TimePoint PaceAt(double seconds) { return kStart + FromSeconds(seconds); }

// Without this, "every third" could take the second, or two in a row.
TEST(FramePace, TakesTheFirstOfEveryN) {
  FramePace pace(3, 0);
  std::string taken;
  for (int i = 0; i < 9; ++i) taken += pace.Refuses(PaceAt(i * 0.04)) ? '.' : 'x';
  EXPECT_EQ(taken, "x..x..x..");
}

// Without this, the most frames a second could be the source's rate divided by a whole number.
TEST(FramePace, TakesTheRateThatWasAskedForWhateverTheSources) {
  for (const double source : {25.0, 30.0, 60.0}) {
    FramePace pace(1, 10);
    int taken = 0;
    const int frames = static_cast<int>(source * 100);
    for (int i = 0; i < frames; ++i) taken += pace.Refuses(PaceAt(i / source)) ? 0 : 1;
    EXPECT_NEAR(taken, 1000, 2) << source;
  }
}

// Without this, a camera whose frames come a few milliseconds early would lose half of them.
TEST(FramePace, LosesNothingOfACameraOfThatRateWithJitter) {
  Rng rng = Rng::Stream(7, "jitter");
  FramePace pace(1, 10);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) {
    taken += pace.Refuses(PaceAt(i * 0.1 + rng.Uniform() * 0.008)) ? 0 : 1;
  }
  EXPECT_EQ(taken, 1000);
}

// Without this, a camera that was silent for a minute could send a minute's frames at once.
TEST(FramePace, AGapEarnsNoBurst) {
  FramePace pace(1, 5);
  EXPECT_FALSE(pace.Refuses(PaceAt(0)));
  int taken = 0;
  for (int i = 0; i < 45; ++i) taken += pace.Refuses(PaceAt(60 + i * 0.02)) ? 0 : 1;
  EXPECT_EQ(taken, 5);
}

}  // namespace
}  // namespace tactus
