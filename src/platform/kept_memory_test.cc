// Without these a server that is never idle would keep what a flood left in its allocator for ever.
#include "platform/kept_memory.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr std::int64_t kMb = std::int64_t{1} << 20;

HeapUse Use(std::int64_t resident_mb, std::int64_t in_use_mb) {
  return {.resident = resident_mb * kMb, .in_use = in_use_mb * kMb};
}

// How many readings of `use` there are until memory is given back; 0: none of 100 gives it back.
int ReadingsUntilGivenBack(KeptMemory& kept, const HeapUse& use) {
  for (int n = 1; n <= 100; ++n) {
    if (kept.GivesBackBusy(use)) return n;
  }
  return 0;
}

TEST(KeptMemory, AnIdleProcessGivesItBackOnceForEachTimeOfWork) {
  KeptMemory kept;
  EXPECT_FALSE(kept.GivesBackIdle(7));  // nobody knows yet whether it works
  EXPECT_TRUE(kept.GivesBackIdle(7));
  kept.GaveBack(Use(50, 40));
  EXPECT_FALSE(kept.GivesBackIdle(7));
  EXPECT_FALSE(kept.GivesBackIdle(8));
  EXPECT_FALSE(kept.GivesBackIdle(9));
  EXPECT_TRUE(kept.GivesBackIdle(9));
}

TEST(KeptMemory, UnderLoadWhatAFloodLeftGoesBackAfterAMinute) {
  KeptMemory kept;
  EXPECT_EQ(ReadingsUntilGivenBack(kept, Use(50, 40)), 0);
  EXPECT_FALSE(kept.GivesBackBusy(Use(1500, 1490)));  // the flood uses it
  EXPECT_EQ(ReadingsUntilGivenBack(kept, Use(1500, 41)), static_cast<int>(KeptMemory::kReadings));
  kept.GaveBack(Use(55, 41));
  EXPECT_EQ(ReadingsUntilGivenBack(kept, Use(55, 41)), 0);
}

TEST(KeptMemory, WhatComesAndGoesWithTheLoadStays) {
  KeptMemory kept;
  for (int n = 0; n < 100; ++n) {
    // All but one of kReadings readings find little in use.
    const bool at_work = n % static_cast<int>(KeptMemory::kReadings) == 0;
    EXPECT_FALSE(kept.GivesBackBusy(Use(400, at_work ? 380 : 200)));
  }
}

// Neither fragments nor memory that was given out and never touched is taken for what is kept: else
// memory would be given back again and again, to no avail.
TEST(KeptMemory, WhatCannotGoBackIsNotTriedAgain) {
  KeptMemory fragments;
  EXPECT_FALSE(fragments.GivesBackBusy(Use(50, 40)));
  EXPECT_GT(ReadingsUntilGivenBack(fragments, Use(300, 100)), 0);
  fragments.GaveBack(Use(290, 100));
  EXPECT_EQ(ReadingsUntilGivenBack(fragments, Use(290, 100)), 0);
  EXPECT_GT(ReadingsUntilGivenBack(fragments, Use(400, 100)), 0);

  KeptMemory untouched;
  EXPECT_EQ(ReadingsUntilGivenBack(untouched, Use(50, 500)), 0);
  EXPECT_GT(ReadingsUntilGivenBack(untouched, Use(150, 500)), 0);  // 100 MB more than at its least
}

TEST(KeptMemory, AReadingIsOfThisProcess) {
  EXPECT_GT(ReadHeap().resident, 0);
  EXPECT_GE(ReadHeap().in_use, 0);  // 0 where a sanitizer's allocator is in place of glibc's
}

}  // namespace
}  // namespace tactus
