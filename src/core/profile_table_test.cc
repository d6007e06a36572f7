#include "core/profile_table.h"

#include <gtest/gtest.h>

#include "core/feasible.h"

namespace tactus {
namespace {

// Two models on two lane classes: exits of 1 and 4 ms a batch plus 1 ms for each further request;
// the second class is twice as slow. The second model has one exit of 10 ms.
ProfileTable TwoModels() {
  ProfileTable::ModelRows first{.exits = 2, .max_batch = 3, .latency = {}};
  ProfileTable::ModelRows second{.exits = 1, .max_batch = 1, .latency = {}};
  for (const int slower : {1, 2}) {
    for (const int base : {1, 4}) {
      for (int b = 0; b < 3; ++b) first.latency.push_back(Millis((base + b) * slower));
    }
    second.latency.push_back(Millis(10 * slower));
  }
  const ProfileTable::ModelRows rows[] = {first, second};
  return ProfileTable(2, rows);
}

TEST(ProfileTable, FindsEachCell) {
  const ProfileTable table = TwoModels();
  EXPECT_EQ(table.Latency(ModelId{0}, ExitId{0}, 1, LaneClass{0}), Millis(1));
  EXPECT_EQ(table.Latency(ModelId{0}, ExitId{1}, 3, LaneClass{0}), Millis(6));
  EXPECT_EQ(table.Latency(ModelId{0}, ExitId{1}, 3, LaneClass{1}), Millis(12));
  EXPECT_EQ(table.Latency(ModelId{1}, ExitId{0}, 1, LaneClass{1}), Millis(20));
  EXPECT_EQ(table.Quickest(ModelId{0}, LaneClass{1}), Millis(2));
}

// What a policy derives from latencies is derived anew where they changed, and nowhere else.
TEST(ProfileTable, FollowsAndTellsWhatChanged) {
  const ProfileTable profiled = TwoModels();
  ProfileTable table = profiled;
  RevisionsSeen seen;
  seen.Prepare(table);
  table.Follow(profiled, ModelId{0}, LaneClass{1}, 1.5);
  EXPECT_EQ(table.Latency(ModelId{0}, ExitId{1}, 3, LaneClass{1}), Millis(18));
  EXPECT_EQ(table.Latency(ModelId{0}, ExitId{1}, 3, LaneClass{0}), Millis(6));
  EXPECT_EQ(table.Latency(ModelId{1}, ExitId{0}, 1, LaneClass{1}), Millis(20));
  int changed = 0;
  const auto count = [&](ModelId m) {
    EXPECT_EQ(m, ModelId{0});
    ++changed;
  };
  seen.Take(table, count);
  seen.Take(table, count);
  EXPECT_EQ(changed, 1);
  table.Follow(profiled, ModelId{0}, LaneClass{1}, 2, Millis(1));
  EXPECT_EQ(table.Latency(ModelId{0}, ExitId{1}, 3, LaneClass{1}), Millis(23));
}

TEST(ProfileTableDeathTest, RefusesHoles) {
  const ProfileTable::ModelRows rows[] = {
      {.exits = 2, .max_batch = 2, .latency = {Millis(1), Millis(2), Millis(3)}}};
  EXPECT_DEATH(ProfileTable(1, rows), "no holes");
}

// Eq. 6: the deepest exit whose profiled latency still meets the deadline, to the nanosecond.
TEST(DeepestFeasibleExit, IsDeepestThatEndsByTheDeadlineElseShallowest) {
  const ProfileTable table = TwoModels();
  const TimePoint now = kStart + Millis(100);
  const auto exit = [&](Duration slack) {
    return DeepestFeasibleExit(table, ModelId{0}, 1, LaneClass{0}, now + slack, now);
  };
  EXPECT_EQ(exit(Millis(50)), ExitId{1});
  EXPECT_EQ(exit(Millis(4)), ExitId{1});
  EXPECT_EQ(exit(Millis(4) - Nanos(1)), ExitId{0});
  EXPECT_EQ(exit(Millis(-5)), ExitId{0});
}

TEST(DeepestFeasibleExit, LeavesTheReserve) {
  ProfileTable table = TwoModels();
  table.SetReserve(ModelId{0}, Millis(2));
  const auto exit = [&](Duration slack) {
    return DeepestFeasibleExit(table, ModelId{0}, 1, LaneClass{0}, kStart + slack, kStart);
  };
  EXPECT_EQ(exit(Millis(6)), ExitId{1});
  EXPECT_EQ(exit(Millis(6) - Nanos(1)), ExitId{0});
}

}  // namespace
}  // namespace tactus
