// Without this the memory of the largest call ever made would stay taken.
#include "engines/onnxruntime/arena_growth.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr std::uint64_t kSmall = 1 << 10;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 30;

TEST(ArenaGrowth, ARunFarLargerThanUsualGivesBackWhatItTook) {
  ArenaGrowth arena;
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(arena.ShrinksAfter(kSmall)) << i;
  EXPECT_TRUE(arena.ShrinksAfter(kHuge));
}

TEST(ArenaGrowth, RunsThatAreUsuallyLargeKeepTheirMemoryUntilTheyAreNot) {
  ArenaGrowth arena;
  for (int i = 0; i < 50; ++i) arena.ShrinksAfter(kHuge);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(arena.ShrinksAfter(kHuge)) << i;
  int shrank = 0;
  for (int i = 0; i < 200; ++i) shrank += arena.ShrinksAfter(kSmall) ? 1 : 0;
  EXPECT_EQ(shrank, 1);
}

TEST(ArenaGrowth, AHugeAnswerIsGivenBackByTheNextRun) {
  ArenaGrowth arena;
  EXPECT_FALSE(arena.ShrinksAfter(kSmall));
  arena.Answered(kHuge);
  EXPECT_TRUE(arena.ShrinksAfter(kSmall));
  EXPECT_FALSE(arena.ShrinksAfter(kSmall));
}

}  // namespace
}  // namespace tactus
