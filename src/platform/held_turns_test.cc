// Without these the steps of one batch would be decided one by one, or some of them by nobody.
#include "platform/held_turns.h"

#include <functional>

#include <gtest/gtest.h>

namespace tactus {
namespace {

struct Loop final : TurnTaker {
  void TakeTurns() override {
    ++turns;
    if (in_turn) in_turn();
  }
  // Work that needs a turn: now, or as its thread holds it.
  void Bring() {
    if (!HeldTurns::Hold(*this)) TakeTurns();
  }
  int turns = 0;
  std::function<void()> in_turn;
};

TEST(HeldTurns, TakesOneTurnForAllThatWasBrought) {
  Loop loop;
  Loop other;
  {
    HeldTurns held;
    loop.Bring();
    loop.Bring();
    other.Bring();
    EXPECT_EQ(loop.turns + other.turns, 0);
    held.Take();
    EXPECT_EQ(loop.turns, 1);
    EXPECT_EQ(other.turns, 1);
    loop.Bring();
  }
  EXPECT_EQ(loop.turns, 2);
  EXPECT_EQ(other.turns, 1);
  loop.Bring();
  EXPECT_EQ(loop.turns, 3) << "nobody holds any more";
  loop.AwaitHeld();
}

TEST(HeldTurns, AnInnerOneLeavesItToTheOuterOne) {
  Loop loop;
  HeldTurns outer;
  {
    HeldTurns inner;
    loop.Bring();
    inner.Take();
  }
  EXPECT_EQ(loop.turns, 0);
  outer.Take();
  EXPECT_EQ(loop.turns, 1);
}

TEST(HeldTurns, WhatATurnBringsIsNotHeld) {
  Loop loop;
  Loop next;
  loop.in_turn = [&] {
    next.Bring();
    HeldTurns inner;
    next.Bring();
  };
  HeldTurns held;
  loop.Bring();
  held.Take();
  EXPECT_EQ(next.turns, 2);
}

TEST(HeldTurns, TurnsOfMoreThanItCanHoldAreTakenAtOnce) {
  Loop loops[5];
  HeldTurns held;
  for (Loop& loop : loops) loop.Bring();
  EXPECT_EQ(loops[3].turns, 0);
  EXPECT_EQ(loops[4].turns, 1);
  held.Take();
  for (const Loop& loop : loops) EXPECT_EQ(loop.turns, 1);
}

}  // namespace
}  // namespace tactus
