// If the fake device broke the rules that a device keeps to, `./run bench gpu --fake` would prove
// nothing about the benchmark.
#include "device/block_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::Lt;

constexpr BlockScheduler::Options kSmall{.sms = 16, .group_sms = 8, .threads_per_sm = 1024};

TEST(BlockScheduler, ABlockMoreThanFitIsAnotherWave) {
  BlockScheduler device(kSmall);
  const auto full = device.Add({.blocks = 16, .each = Millis(1)}, Duration{});
  EXPECT_EQ(device.Next(), Millis(1));
  const auto more = device.Add({.blocks = 17, .each = Millis(1)}, Duration{});
  device.Advance(Millis(1));
  EXPECT_TRUE(device.Done(full));
  device.Advance(Millis(2));
  EXPECT_FALSE(device.Done(more));
  device.Advance(Millis(3));
  EXPECT_TRUE(device.Done(more));
  EXPECT_FALSE(device.Next());
}

TEST(BlockScheduler, SmallBlocksShareAnSm) {
  BlockScheduler device(kSmall);
  const auto four = device.Add({.blocks = 64, .threads = 256, .each = Millis(1)}, Duration{});
  device.Advance(Millis(1));
  EXPECT_TRUE(device.Done(four));
}

// Time jumps over many waves at once: each begins when the one before it ends, not when somebody
// looks.
TEST(BlockScheduler, WavesFollowEachOtherHoweverLateSomebodyLooks) {
  BlockScheduler device(kSmall);
  std::vector<Duration> ends;
  device.Add({.blocks = 48,
              .each = Millis(1),
              .on_end = [&](const EndedBlock& b) { ends.push_back(b.end); }},
             Duration{});
  device.Advance(Seconds(1));
  ASSERT_EQ(ends.size(), 48u);
  EXPECT_EQ(ends.front(), Millis(1));
  EXPECT_EQ(ends.back(), Millis(3));
}

// A high priority stops no block, and passes all that have not begun.
TEST(BlockScheduler, UrgentWorkWaitsForOneBlockAtMost) {
  BlockScheduler device(kSmall);
  device.Add({.priority = 0, .blocks = 32 * 16, .each = Millis(1)}, Duration{});
  Duration begin{};
  const auto urgent = device.Add({.priority = -5,
                                  .blocks = 16,
                                  .each = Micros(100),
                                  .on_end = [&](const EndedBlock& b) { begin = b.begin; }},
                                 FromMillis(4.5));
  device.Advance(FromMillis(5.1));
  EXPECT_TRUE(device.Done(urgent));
  EXPECT_EQ(begin, Millis(5));
}

TEST(BlockScheduler, WorkOfOnePriorityWaitsForAllThatCameBefore) {
  BlockScheduler device(kSmall);
  device.Add({.blocks = 32 * 16, .each = Millis(1)}, Duration{});
  const auto next = device.Add({.blocks = 16, .each = Micros(100)}, FromMillis(4.5));
  device.Advance(Millis(32));
  EXPECT_FALSE(device.Done(next));
  device.Advance(Millis(33));
  EXPECT_TRUE(device.Done(next));
}

TEST(BlockScheduler, PartsKeepToTheirSms) {
  BlockScheduler device(kSmall);
  std::vector<int> left;
  std::vector<int> right;
  const auto into = [](std::vector<int>& sms) {
    return [&sms](const EndedBlock& b) { sms.push_back(b.sm); };
  };
  device.Add({.groups = {0}, .blocks = 40, .each = Millis(1), .on_end = into(left)}, Duration{});
  device.Add({.groups = {1}, .blocks = 40, .each = Millis(1), .on_end = into(right)}, Duration{});
  device.Advance(Millis(5));
  ASSERT_EQ(left.size(), 40u);
  ASSERT_EQ(right.size(), 40u);
  EXPECT_THAT(left, Each(Lt(8)));
  EXPECT_THAT(right, Each(Ge(8)));
}

}  // namespace
}  // namespace tactus
