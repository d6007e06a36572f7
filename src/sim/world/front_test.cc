#include "sim/world/front.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr Duration kFrontSlo = Seconds(1);

Scenario Costly(int threads = 1) {
  Scenario scenario;
  scenario.models = {{.name = "small"}, {.name = "large", .bytes = 1'000'000}};
  scenario.front_call_us = 40;
  scenario.front_byte_ns = 0.3;
  scenario.front_threads = threads;
  return scenario;
}

TEST(Front, ReadsOneCallAfterTheOther) {
  Front front(Costly());
  const Front::Read small = front.Take(0, kFrontSlo, kStart);
  EXPECT_EQ(small.begun, kStart);
  EXPECT_EQ(small.done, kStart + Micros(20));
  const Front::Read large = front.Take(1, kFrontSlo, kStart + Micros(5));
  EXPECT_EQ(large.begun, kStart + Micros(20));
  EXPECT_EQ(large.done, kStart + Micros(340));
  EXPECT_EQ(front.Answer(kStart + Micros(100)), kStart + Micros(360));
  EXPECT_EQ(front.Answer(kStart + Millis(9)), kStart + Millis(9) + Micros(20));
}

TEST(Front, ThreadsReadBesideEachOther) {
  Front front(Costly(2));
  EXPECT_EQ(front.Take(1, kFrontSlo, kStart).done, kStart + Micros(320));
  EXPECT_EQ(front.Take(0, kFrontSlo, kStart).done, kStart + Micros(20));
  EXPECT_EQ(front.Take(0, kFrontSlo, kStart).begun, kStart + Micros(20));
}

TEST(Front, LeavesBeforeDeadlinesWhatAnswersOfLateHaveWaited) {
  Front front(Costly());
  EXPECT_EQ(front.BothWays(), Duration{});
  TimePoint now = kStart;
  for (int i = 0; i < 1000; ++i, now += Micros(400)) {
    front.Take(1, kFrontSlo, now);
    front.Answer(now + Micros(20));  // waits for 300 us
  }
  EXPECT_GE(front.BothWays(), Micros(500));
  EXPECT_LE(front.BothWays(), Micros(2500));
}

TEST(Front, SpacesRefusalsOfThoseWhoComeBackAtOnce) {
  Front front(Costly());
  TimePoint now = kStart;
  int told = 0;
  while (now < kStart + Seconds(1)) {
    now = front.Refuse(0, true, Millis(500), now);
    ++told;
  }
  EXPECT_GT(told, 500);
  EXPECT_LT(told, 2200);  // a twentieth of a core, at 25 us each
}

TEST(Front, RefusesUnreadBodiesAsSmallCalls) {
  Front read(Costly());
  Front unread(Costly());
  TimePoint read_at = kStart;
  TimePoint unread_at = kStart;
  for (int i = 0; i < 100; ++i) {
    read_at = read.Refuse(1, true, Millis(500), read_at);
    unread_at = unread.Refuse(1, false, Millis(500), unread_at);
  }
  EXPECT_LT(unread_at - kStart, (read_at - kStart) / 10);
}

TEST(Front, ReadsOfARefusedBodyWhatComesBeforeTheRefusal) {
  Scenario scenario = Costly();
  for (const double unread_bytes : {0.0, 100'000.0, 5'000'000.0}) {
    scenario.front_unread_bytes = unread_bytes;
    Front front(scenario);
    // Once a call was lost, no more than a usual batch is let in while nothing is answered.
    const Front::Read lost = front.Take(1, kFrontSlo, kStart);
    const TimePoint now = kStart + Seconds(2);
    front.Leave(1, *lost.place, false, now);
    for (int i = 0; i < BodyGate::kLeast; ++i) {
      ASSERT_FALSE(front.Take(1, kFrontSlo, now).unread) << i;
    }
    const Front::Read call = front.Take(1, kFrontSlo, now);
    ASSERT_TRUE(call.unread);
    const double body_us = 0.3e-3 * std::min(unread_bytes, 1e6);
    EXPECT_EQ(call.done - call.begun, Micros(20 + std::lround(body_us)));
  }
}

TEST(Front, SharedCoresStretchBatchesByItsWork) {
  Scenario scenario = Costly();
  Front own(scenario);
  scenario.front_cores = "shared";
  Front shared(scenario);
  TimePoint now = kStart;
  EXPECT_EQ(shared.Stretched(Millis(10), now), Millis(10));
  for (int i = 0; i < 1000; ++i, now += Micros(1280)) {  // a quarter of a core
    own.Take(1, kFrontSlo, now);
    shared.Take(1, kFrontSlo, now);
  }
  EXPECT_EQ(own.Stretched(Millis(10), now), Millis(10));
  EXPECT_NEAR(ToMillis(shared.Stretched(Millis(10), now)), 10 / 0.75, 0.2);
}

}  // namespace
}  // namespace tactus
