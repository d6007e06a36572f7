// By what a step has needed of late its pipeline's time is shared. Without these, one slow second
// could move the shares so far that no step is ever tried again, and nothing would be measured.
#include "ensemble/step_latency.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TimePoint At(double s) { return kStart + FromSeconds(s); }

TEST(StepLatency, IsTheSmoothedMedianOfTheLastSeconds) {
  StepLatency latency;
  EXPECT_FALSE(latency.Update(At(0)));
  for (const int took : {10, 30, 20}) latency.Add(At(1), Millis(took));
  EXPECT_EQ(latency.Update(At(1)), Millis(20));
  for (int i = 0; i < 4; ++i) latency.Add(At(2), Millis(60));
  EXPECT_EQ(latency.Update(At(2)), Millis(40)) << "half of the way to the new median, 60 ms";
}

TEST(StepLatency, FadesWhereNothingIsAnsweredAnyMore) {
  StepLatency latency;
  for (int i = 0; i < 5; ++i) latency.Add(At(1), Millis(400));
  EXPECT_EQ(latency.Update(At(1)), Millis(400));
  EXPECT_EQ(latency.Update(At(2)), Millis(400));
  EXPECT_EQ(latency.Update(At(3)), Millis(400)) << "two seconds are no silence yet";
  EXPECT_EQ(latency.Update(At(4)), Millis(200));
  EXPECT_EQ(latency.Update(At(5)), Millis(100));
  latency.Add(At(6), Millis(30));
  EXPECT_GT(*latency.Update(At(6)), Millis(100)) << "the old ones still count, while it answers";
  EXPECT_FALSE(latency.Update(At(17))) << "nobody knows any more";
}

}  // namespace
}  // namespace tactus
