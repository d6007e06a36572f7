// Without these a batch whose neighbours come and go could end twice, never, or at an instant that
// its work does not add up to.
#include "sim/devices/shared_device.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

constexpr TimePoint At(int ms) { return kStart + Millis(ms); }

// Two of these together take twice as long.
SharedWork Whole(Duration kernel, Duration transfer = {}, int priority = 1) {
  return {.transfer = transfer,
          .kernel = kernel,
          .contender = {.use = {1, 1, 1, 1, 1}},
          .priority = priority};
}

constexpr SharedDeviceOptions kQuietDevice{.contention = {.crosstalk = 0}};

// The ends of what runs, by slot, until nothing does.
std::map<int, TimePoint> Drain(SharedDevice& device) {
  std::map<int, TimePoint> ends;
  while (device.next() != kNever) {
    const TimePoint now = device.next();
    for (int slot; (slot = device.Advance(now)) != SharedDevice::kNone;) {
      EXPECT_TRUE(ends.emplace(slot, now).second) << "slot " << slot << " ended twice";
    }
  }
  return ends;
}

TEST(SharedDevice, RunsABatchAloneForAsLongAsItTakesAlone) {
  SharedDevice device(kQuietDevice, 4);
  device.Begin(2, At(1), At(3), Whole(Millis(10), Millis(2)));
  EXPECT_EQ(Drain(device), (std::map<int, TimePoint>{{2, At(15)}}));
  EXPECT_EQ(device.uploaded(2), At(5));
}

// 0 runs alone for 4 ms; then both at half speed, until 0 has its last 6 ms done at 16; 1, with 6
// of its 10 done, is alone again.
TEST(SharedDevice, TimesABatchAnewWhenNeighboursComeAndGo) {
  SharedDevice device(kQuietDevice, 2);
  device.Begin(0, At(0), At(0), Whole(Millis(10)));
  EXPECT_EQ(device.next(), At(10));
  device.Begin(1, At(4), At(4), Whole(Millis(10)));
  EXPECT_EQ(Drain(device), (std::map<int, TimePoint>{{0, At(16)}, {1, At(20)}}));
}

// Beside the other its 12 days are more than a clock of nanoseconds holds; it is not done at once.
TEST(SharedDevice, WhatGetsNextToNothingEndsAfterItsNeighbours) {
  SharedDevice device(kQuietDevice, 2);
  SharedWork low = Whole(Seconds(1'000'000));
  low.contender.weight = 1e-200;
  device.Begin(0, At(0), At(0), low);
  device.Begin(1, At(0), At(0), Whole(Millis(10)));
  const auto ends = Drain(device);
  EXPECT_EQ(ends.at(1), At(10));
  EXPECT_GE(ends.at(0), At(10) + Seconds(1'000'000) - Nanos(10));
  EXPECT_LE(ends.at(0), At(10) + Seconds(1'000'000));
}

TEST(SharedDevice, SendsInputsOneAfterAnother) {
  SharedDevice device(kQuietDevice, 3);
  device.Begin(0, At(0), At(0), Whole(Millis(1), Millis(5)));
  device.Begin(1, At(1), At(1), Whole(Millis(1), Millis(3)));
  EXPECT_EQ(Drain(device), (std::map<int, TimePoint>{{0, At(6)}, {1, At(9)}}));
  EXPECT_EQ(device.uploaded(1), At(8));
  // The link is free again, and does not make up for lost time.
  device.Begin(2, At(20), At(20), Whole(Millis(1), Millis(3)));
  EXPECT_EQ(Drain(device), (std::map<int, TimePoint>{{2, At(24)}}));
}

TEST(SharedDevice, GivesBackWhatAStoppedBatchUsed) {
  SharedDevice device(kQuietDevice, 2);
  device.Begin(0, At(0), At(0), Whole(Millis(10)));
  device.Begin(1, At(0), At(0), Whole(Millis(10)));
  EXPECT_EQ(device.next(), At(20));
  device.Stop(1, At(8));
  EXPECT_EQ(Drain(device), (std::map<int, TimePoint>{{0, At(14)}}));
}

// The low one stands still from 2 to 13, then goes on where it was; the high one pays 1 ms.
TEST(SharedDevice, SuspendsLowerLevelsWhereAsked) {
  SharedDeviceOptions options = kQuietDevice;
  options.suspends = true;
  options.preemption = Millis(1);
  SharedDevice device(options, 2);
  device.Begin(0, At(0), At(0), Whole(Millis(6), {}, 2));
  device.Begin(1, At(2), At(2), Whole(Millis(10), {}, 1));
  EXPECT_EQ(Drain(device), (std::map<int, TimePoint>{{1, At(13)}, {0, At(17)}}));
}

// Random lives: every batch that is not stopped ends once, not before its work could be done alone
// and not after all the work there was, done one after another with the worst luck.
TEST(SharedDevice, EndsEveryBatchOnceInRandomLives) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::Stream(seed, "shared device test");
    constexpr int kSlots = 4;
    SharedDeviceOptions options;
    options.suspends = rng.Below(3) == 0;
    SharedDevice device(options, kSlots);
    std::vector<TimePoint> earliest(kSlots, kNever);
    TimePoint now = kStart;
    Duration work{};
    int begun = 0, ended = 0, stopped = 0;
    const auto advance = [&](TimePoint to) {
      while (device.next() <= to) {
        const TimePoint at = device.next();
        for (int slot; (slot = device.Advance(at)) != SharedDevice::kNone; ++ended) {
          ASSERT_NE(earliest[slot], kNever) << "an end of nothing";
          EXPECT_GE(at, earliest[slot]);
          earliest[slot] = kNever;
        }
      }
    };
    for (int i = 0; i < 100; ++i) {
      now += Micros(static_cast<std::int64_t>(rng.Below(3000)));
      advance(now);
      const int slot = static_cast<int>(rng.Below(kSlots));
      if (earliest[slot] != kNever) {
        if (rng.Below(4) != 0) continue;
        device.Stop(slot, now);
        earliest[slot] = kNever;
        ++stopped;
        continue;
      }
      SharedWork job;
      job.transfer = Micros(static_cast<std::int64_t>(rng.Below(500)));
      job.kernel = Micros(1 + static_cast<std::int64_t>(rng.Below(5000)));
      for (double& share : job.contender.use) share = rng.Uniform();
      job.contender.luck = 0.5 + rng.Uniform();
      job.priority = 1 + static_cast<int>(rng.Below(3));
      device.Begin(slot, now, now, job);
      earliest[slot] = now + job.transfer + job.kernel;
      work += job.transfer + job.kernel;
      ++begun;
    }
    advance(now + 20 * work);
    EXPECT_EQ(begun, ended + stopped);
    EXPECT_EQ(device.next(), kNever);
  }
}

}  // namespace
}  // namespace tactus
