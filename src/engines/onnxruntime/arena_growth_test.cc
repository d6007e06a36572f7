// Without this the memory of the largest call ever made would stay taken.
#include "engines/onnxruntime/arena_growth.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr std::uint64_t kSmall = 1 << 20;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 30;

// An arena that keeps what runs needed until it shrinks. What somebody holds is not idle.
struct Arena {
  ArenaGrowth growth;
  std::uint64_t taken = 0;
  std::uint64_t held = 0;
  int shrank = 0;

  void Run(std::uint64_t needs) {
    const bool shrinks = growth.ShrinksAfter([this] { return taken - held; });
    taken = std::max(taken, held + needs);
    if (!shrinks) return;
    ++shrank;
    taken = held;
  }
  // So many times nobody had run it since the last.
  void Rest(std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      if (!growth.ShrinksAtRest([this] { return taken - held; })) continue;
      ++shrank;
      taken = held;
    }
  }
  void Run(std::uint64_t needs, int times) {
    for (int i = 0; i < times; ++i) Run(needs);
  }
};

TEST(ArenaGrowth, WhatOneRunTookIsGivenBackByTheRunsAfterIt) {
  Arena arena;
  arena.Run(kSmall, 50);
  EXPECT_EQ(arena.shrank, 0);
  arena.Run(kHuge);
  arena.Run(kSmall, 16);
  EXPECT_EQ(arena.taken, kSmall);
  EXPECT_EQ(arena.shrank, 1);
}

TEST(ArenaGrowth, RunsThatAreUsuallyLargeKeepTheirMemory) {
  Arena arena;
  arena.Run(kHuge, 100);
  EXPECT_LE(arena.shrank, 2);
  arena.Run(4 * kHuge);
  arena.Run(kHuge, 100);
  EXPECT_EQ(arena.taken, kHuge);
  arena.Run(kHuge, 100'000);
  EXPECT_LE(arena.shrank, 120) << "each costs as much as a run";
}

// What one run took before the next look is not what runs usually need.
TEST(ArenaGrowth, SeveralHugeRunsAreForgottenToo) {
  Arena arena;
  for (int i = 0; i < 4; ++i) {
    arena.Run(kHuge);
    for (int until = 0; until < 4096 && arena.taken > kSmall; ++until) arena.Run(kSmall);
    ASSERT_LE(arena.taken, kSmall) << i;
    arena.Run(kHuge);
    arena.Run(kSmall, 3);
  }
  arena.Run(kSmall, 2048);
  EXPECT_EQ(arena.taken, kSmall);
}

TEST(ArenaGrowth, AnAnswerThatSomebodyHoldsIsGivenBackOnceNobodyDoes) {
  Arena arena;
  arena.Run(kHuge);
  arena.held = kHuge;
  arena.Run(kSmall, 100);
  EXPECT_GE(arena.taken, kHuge);
  arena.held = 0;
  arena.Run(kSmall, 32);
  EXPECT_EQ(arena.taken, kSmall);
}

// The last call may have been the huge one.
TEST(ArenaGrowth, WhereNothingRunsWhatLiesIdleIsGivenBackOnce) {
  Arena arena;
  arena.Run(kHuge);
  arena.Rest(ArenaGrowth::kStill);
  EXPECT_EQ(arena.taken, kHuge) << "one ran since the first question";
  arena.Rest(1);
  EXPECT_EQ(arena.taken, 0u);
  arena.Rest(100 * ArenaGrowth::kStill);
  EXPECT_EQ(arena.shrank, 1);
}

TEST(ArenaGrowth, RunsNowAndThenAreNoRest) {
  Arena arena;
  for (int i = 0; i < 7; ++i) {
    arena.Run(kHuge);
    arena.Rest(ArenaGrowth::kStill);
  }
  EXPECT_EQ(arena.shrank, 0);
}

TEST(ArenaGrowth, AnAnswerThatSomebodyHeldAtFirstIsGivenBackAtRestToo) {
  Arena arena;
  arena.Run(kHuge);
  arena.held = kHuge;
  arena.Rest(2 * ArenaGrowth::kStill);
  arena.held = 0;
  arena.Rest(ArenaGrowth::kStill);
  EXPECT_EQ(arena.taken, 0u);
}

TEST(ArenaGrowth, LargeRunsNowAndThenMakeItShrinkEverMoreSeldom) {
  Arena arena;
  for (int i = 0; i < 1000; ++i) {
    arena.Run(kHuge);
    arena.Run(kSmall, 20);
  }
  EXPECT_LE(arena.shrank, 30);
}

}  // namespace
}  // namespace tactus
