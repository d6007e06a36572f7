// Without these a lane that never ends what it runs would hold a change of the layout unnoticed.
#include "runtime/layout/drain_watch.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr TimePoint At(int ms) { return kStart + Millis(ms); }
constexpr LaneId kOne{1}, kTwo{2};

TEST(DrainWatch, NamesEachLaneOnceThatTakesTenTimesTheLongestBatch) {
  DrainWatch drains(Millis(50));
  EXPECT_EQ(drains.bound(), Millis(500));
  drains.Begin(kOne, At(1000));
  drains.Begin(kTwo, At(1200));
  EXPECT_EQ(drains.Overdue(At(1500)), std::nullopt);
  EXPECT_EQ(drains.Overdue(At(1501)), kOne);
  EXPECT_EQ(drains.Overdue(At(1700)), std::nullopt) << "it was named";
  EXPECT_EQ(drains.Overdue(At(1701)), kTwo);
  EXPECT_EQ(drains.Overdue(At(9000)), std::nullopt);
  drains.End(kOne);
  drains.Begin(kOne, At(9000));
  EXPECT_EQ(drains.Overdue(At(9501)), kOne) << "of another change";
}

TEST(DrainWatch, SaysHowManyLanesDrainAndForHowLong) {
  DrainWatch drains(Millis(50));
  EXPECT_EQ(drains.lanes(), 0);
  EXPECT_EQ(drains.Longest(At(1000)), Duration{});
  drains.Begin(kOne, At(1000));
  drains.Begin(kTwo, At(1200));
  EXPECT_EQ(drains.lanes(), 2);
  EXPECT_EQ(drains.Longest(At(1300)), Millis(300));
  drains.End(kOne);
  EXPECT_EQ(drains.lanes(), 1);
  EXPECT_EQ(drains.Longest(At(1300)), Millis(100));
  drains.EndAll();
  EXPECT_EQ(drains.lanes(), 0);
}

TEST(DrainWatch, ShortBatchesAreGivenATenthOfASecond) {
  EXPECT_EQ(DrainWatch(Micros(20)).bound(), Millis(100));
}

}  // namespace
}  // namespace tactus
