#include "sim/devices/sim_device.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "metrics/recorder.h"
#include "sim/sim_testing.h"

namespace tactus {
namespace {

ProfileFile Measured() {
  ProfileFile profile;
  profile.models = {AffineModelOf("m", Millis(0), Millis(3), 2)};
  profile.models[0].exits[0].cells[1] = {.repetitions = 500,
                                         .mean_ms = 4.5,
                                         .min_ms = 3,
                                         .p50_ms = 4,
                                         .p95_ms = 6,
                                         .p99_ms = 8,
                                         .max_ms = 10};
  return profile;
}

constexpr ModelId kModel{0};
constexpr ExitId kExit{0};

TEST(SimDevice, DrawsThePercentilesThatWereMeasured) {
  SimDevice device(Measured(), 7, true);
  std::vector<Duration> drawn;
  for (int i = 0; i < 100'000; ++i) drawn.push_back(device.Draw(kModel, kExit, 2, kStart));
  EXPECT_NEAR(ToMillis(Percentile(drawn, 50)), 4, 0.02);
  EXPECT_NEAR(ToMillis(Percentile(drawn, 95)), 6, 0.05);
  EXPECT_NEAR(ToMillis(Percentile(drawn, 99)), 8, 0.3);
  EXPECT_GE(ToMillis(Percentile(drawn, 0.001)), 3);
  EXPECT_LE(ToMillis(Percentile(drawn, 100)), 10);
}

// What was not measured has no spread that we could know of.
TEST(SimDevice, TakesTheMeanWhereNothingVaries) {
  SimDevice noisy(Measured(), 7, true);
  SimDevice quiet(Measured(), 7, false);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(noisy.Draw(kModel, kExit, 1, kStart), Millis(3));
    EXPECT_EQ(quiet.Draw(kModel, kExit, 2, kStart), Micros(4500));
  }
}

// A machine whose speed moves, and batches that take in service what the profiler did not see.
TEST(SimDevice, FollowsTheServiceRatioAndTheTrace) {
  ProfileFile profile = Measured();
  profile.models[0].service_ratio = 0.5;
  profile.service_window_ms = 100;
  profile.service_trace = {1, 2};
  SimDevice device(profile, 7, false);
  EXPECT_EQ(device.Draw(kModel, kExit, 1, kStart + Millis(99)), Micros(1500));
  EXPECT_EQ(device.Draw(kModel, kExit, 1, kStart + Millis(100)), Millis(3));
  EXPECT_EQ(device.Draw(kModel, kExit, 1, kStart + Millis(199)), Millis(3));
  EXPECT_EQ(device.Draw(kModel, kExit, 1, kStart + Millis(200)), Micros(1500)) << "again";
  SimDevice noisy(profile, 7, true);
  std::vector<Duration> drawn;
  for (int i = 0; i < 10'000; ++i) drawn.push_back(noisy.Draw(kModel, kExit, 2, kStart));
  EXPECT_NEAR(ToMillis(Percentile(drawn, 50)), 2, 0.03);
}

TEST(SimDevice, GivesEachModelItsOwnStream) {
  ProfileFile two = Measured();
  two.models.push_back(two.models[0]);
  two.models[1].name = "other";
  SimDevice alone(Measured(), 7, true);
  SimDevice both(two, 7, true);
  for (int i = 0; i < 100; ++i) {
    both.Draw(ModelId{1}, kExit, 2, kStart);
    EXPECT_EQ(alone.Draw(kModel, kExit, 2, kStart), both.Draw(kModel, kExit, 2, kStart));
  }
}

}  // namespace
}  // namespace tactus
