// Without these batches that run beside each other could take less than the accelerator has to do.
#include "sim/fleet/accelerator.h"

#include <map>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

TimePoint AtMs(double ms) { return kStart + FromMillis(ms); }

// Runs it dry; when each ended.
std::map<std::uint32_t, double> EndsOf(Accelerator& accelerator) {
  std::map<std::uint32_t, double> ends;
  while (accelerator.next() != kNever) {
    const TimePoint now = accelerator.next();
    for (std::uint32_t b; (b = accelerator.TakeEnded(now)) != Accelerator::kNone;) {
      ends[b] = ToMillis(now - kStart);
    }
  }
  return ends;
}

TEST(Accelerator, RunsWhatFitsAtFullSpeed) {
  Accelerator accelerator;
  accelerator.Begin(0, AtMs(0), Millis(10), 0.5);
  accelerator.Begin(1, AtMs(4), Millis(3), 0.5);
  const auto ends = EndsOf(accelerator);
  EXPECT_NEAR(ends.at(0), 10, 1e-6);
  EXPECT_NEAR(ends.at(1), 7, 1e-6);
}

// Two that ask for 0.8 each run at 1 / 1.6. The first has done 4 of 10 ms when the second comes,
// which takes 3 * 1.6 = 4.8 ms; 3 ms of the first are left then.
TEST(Accelerator, SharesWhatIsShort) {
  Accelerator accelerator;
  accelerator.Begin(0, AtMs(0), Millis(10), 0.8);
  accelerator.Begin(1, AtMs(4), Millis(3), 0.8);
  const auto ends = EndsOf(accelerator);
  EXPECT_NEAR(ends.at(1), 8.8, 1e-6);
  EXPECT_NEAR(ends.at(0), 11.8, 1e-6);
}

TEST(Accelerator, LosesALittleToEachNeighbour) {
  Accelerator accelerator(0.1);
  for (std::uint32_t b = 0; b < 3; ++b) accelerator.Begin(b, AtMs(0), Millis(10), 0.1);
  for (const auto& [batch, end] : EndsOf(accelerator)) EXPECT_NEAR(end, 12, 1e-6) << batch;
}

TEST(Accelerator, GoesOnAloneOnceANeighbourIsStopped) {
  Accelerator accelerator;
  accelerator.Begin(0, AtMs(0), Millis(10), 1);
  accelerator.Begin(1, AtMs(0), Millis(10), 1);
  accelerator.Stop(1, AtMs(10));  // each has done 5 ms
  EXPECT_NEAR(EndsOf(accelerator).at(0), 15, 1e-6);
  EXPECT_EQ(accelerator.busy(AtMs(20)), Millis(15));
}

// Work is kept: batches that each ask for all of it end together after the sum of their times.
TEST(Accelerator, KeepsTheWorkThatThereIs) {
  Rng rng = Rng::Stream(5, "accelerator");
  Accelerator accelerator;
  double sum = 0;
  for (std::uint32_t b = 0; b < 500; ++b) {
    const double ms = 0.001 * static_cast<double>(1 + rng.Below(20'000));
    sum += ms;
    accelerator.Begin(b, AtMs(0), FromMillis(ms), 1);
  }
  double last = 0;
  for (const auto& [batch, end] : EndsOf(accelerator)) last = std::max(last, end);
  EXPECT_NEAR(last, sum, 0.001) << "each end is rounded up to a nanosecond";
}

}  // namespace
}  // namespace tactus
