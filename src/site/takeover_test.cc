#include "site/takeover.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TimePoint At(std::int64_t ms) { return kStart + Millis(ms); }

Takeover Of(std::uint32_t rank, std::uint32_t schedulers = 3) {
  return Takeover({.rank = rank, .schedulers = schedulers}, kStart);
}

TEST(TakeoverTest, TheFirstOfTheListLeadsFirst) {
  Takeover first = Of(0);
  Takeover second = Of(1);
  EXPECT_EQ(first.Step(At(10)), At(300));
  EXPECT_EQ(second.Step(At(10)), At(600));
  first.Step(At(300));
  EXPECT_TRUE(first.leads());
  second.OnBeat(first.term(), At(301));
  second.Step(At(305));
  EXPECT_FALSE(second.leads());
  EXPECT_EQ(second.term(), first.term());
}

TEST(TakeoverTest, EveryTermBelongsToOne) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    for (Term seen = 0; seen < 20; ++seen) {
      Takeover one = Of(rank);
      one.OnTerm(seen, At(1));
      one.Step(At(900));
      ASSERT_TRUE(one.leads());
      EXPECT_GT(one.term(), seen);
      EXPECT_LE(one.term(), seen + 3);
      EXPECT_EQ(one.term() % 3, rank);
    }
  }
}

TEST(TakeoverTest, SilenceIsSuspectedAfterThirtyMilliseconds) {
  Takeover spare = Of(1);
  spare.OnBeat(3, At(500));
  spare.OnBeat(3, At(505));
  EXPECT_EQ(spare.Step(At(530)), At(535));
  EXPECT_FALSE(spare.leads());
  spare.Step(At(535));
  EXPECT_TRUE(spare.leads());
  EXPECT_EQ(spare.term(), 4);
}

TEST(TakeoverTest, AClosedConnectionIsNotWaitedFor) {
  Takeover next = Of(1);
  Takeover last = Of(2);
  for (Takeover* each : {&next, &last}) {
    each->OnBeat(3, At(500));
    each->OnLeaderGone(3, At(501));
  }
  next.Step(At(501));
  EXPECT_TRUE(next.leads());
  EXPECT_EQ(last.Step(At(501)), At(531)) << "the one before it has its time first";
}

TEST(TakeoverTest, TheLossOfAnotherThanTheLeaderChangesNothing) {
  Takeover spare = Of(1);
  spare.OnBeat(6, At(500));
  spare.OnLeaderGone(3, At(501));
  spare.Step(At(502));
  EXPECT_FALSE(spare.leads());
}

TEST(TakeoverTest, ASupersededLeaderDoesNotFightBack) {
  Takeover first = Of(0, 2);
  first.Step(At(300));
  ASSERT_TRUE(first.leads());
  first.OnTerm(3, At(900));
  EXPECT_FALSE(first.leads());
  first.Step(At(901));
  EXPECT_FALSE(first.leads()) << "the other has the time of a suspicion to be heard of";
  first.OnBeat(3, At(905));
  first.Step(At(930));
  EXPECT_FALSE(first.leads());
  first.Step(At(965));
  EXPECT_TRUE(first.leads()) << "and is silent";
  EXPECT_EQ(first.term(), 4);
}

TEST(TakeoverTest, ABeatOfAnOldTermIsNoLife) {
  Takeover spare = Of(1, 2);
  spare.OnBeat(4, At(500));
  spare.OnTerm(5, At(501));
  spare.OnBeat(4, At(520));
  spare.Step(At(530));
  EXPECT_TRUE(spare.leads());
  EXPECT_EQ(spare.term(), 7);
}

}  // namespace
}  // namespace tactus
