#include "server/live/live_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Counts {
  std::uint64_t met = 0, late = 0, shed = 0, expired = 0, cancelled = 0, failed = 0;
};

OutcomeCounts Total(const Counts& c) {
  return {c.met, c.late, c.shed, c.expired, c.cancelled, c.failed};
}

LiveMoments::Answer Answered(Outcome outcome, Duration latency) {
  return {.record = {.arrival = kStart, .ended = kStart + latency, .outcome = outcome}};
}

// One second in which calls ended so, with batches that took `slower` times what was predicted.
LiveModel After(const Counts& counts, double slower = 1) {
  LiveModel model(Millis(50));
  model.Second({}, {});
  model.Note(LiveMoments::Batch{.rows = 4,
                                .started = kStart,
                                .ended = kStart + FromMillis(10 * slower),
                                .predicted = Millis(10)});
  model.Second(Total(counts), {});
  return model;
}

// Without this an operator would read of a cause that is none.
TEST(LiveModel, SaysWhyCallsMiss) {
  const std::deque<LiveLanes> idle{{.busy = 0.3, .longest = Millis(2), .longest_of = "m"}};
  const std::deque<LiveLanes> busy{{.busy = 0.97, .longest = Millis(20), .longest_of = "m"}};
  const std::deque<LiveLanes> held{{.busy = 0.5, .longest = Millis(40), .longest_of = "huge"}};
  EXPECT_EQ(After({.met = 1000, .late = 9}).WhyMissed(busy), "") << "more than 99 % met";
  EXPECT_EQ(After({}).WhyMissed(busy), "");
  EXPECT_EQ(After({.met = 9, .cancelled = 900}).WhyMissed(busy), "") << "their clients went";
  EXPECT_THAT(After({.met = 50, .failed = 50}).WhyMissed(busy), HasSubstr("failed 50 calls"));
  EXPECT_THAT(After({.met = 50, .late = 50}, 1.5).WhyMissed(busy),
              HasSubstr("50 late, 0 given up: its batches take 1.5 times"));
  EXPECT_THAT(After({.met = 50, .late = 20, .shed = 10, .expired = 20}).WhyMissed(busy),
              HasSubstr("20 late, 30 given up: lanes are 97 % busy"));
  EXPECT_THAT(After({.met = 50, .late = 50}).WhyMissed(held),
              HasSubstr("batches of up to 40 ms (huge) hold a lane, and its SLO is 50 ms"));
  EXPECT_THAT(After({.met = 50, .late = 50}).WhyMissed(idle), HasSubstr("lanes are 30 % busy, so"));
}

// Without this a model is blamed for one stall of the machine.
TEST(LiveModel, ABatchThatStalledIsNotItsModelsLength) {
  LiveLanes second;
  second.Note("m", Millis(6), Millis(5));
  second.Note("ee_m", Millis(38), FromMillis(5.6));
  EXPECT_THAT(After({.met = 50, .late = 50}).WhyMissed({second}),
              HasSubstr("a batch of ee_m took 38 ms where 5.6 were expected: the machine stalled"));
  second.Note("huge", Millis(40), Millis(39));
  EXPECT_THAT(After({.met = 50, .late = 50}).WhyMissed({second}),
              HasSubstr("batches of up to 40 ms (huge) hold a lane"));
  LiveLanes elsewhere;
  elsewhere.Note("m", Millis(40), {});
  EXPECT_THAT(After({.met = 50, .late = 50}).WhyMissed({elsewhere}), HasSubstr("hold a lane"))
      << "nobody knows what was expected";
}

TEST(LiveModel, ALaneThatDiedIsWhyCallsMissed) {
  const std::deque<LiveLanes> lanes{{.busy = 0.99, .longest = Millis(40), .deaths = 1}};
  EXPECT_THAT(After({.met = 50, .late = 50}).WhyMissed(lanes), HasSubstr("a lane died once"));
  EXPECT_EQ(After({.met = 100}).WhyMissed(lanes), "");
}

// Just after an overload the lanes of the window are half idle: those of then say why.
TEST(LiveModel, LooksAtTheSecondsInWhichCallsMissed) {
  LiveModel model(Millis(50));
  std::deque<LiveLanes> lanes;
  Counts counts;
  for (int second = 0; second < 9; ++second) {
    const bool overload = second < 3;
    model.Second(Total(counts), {});
    lanes.push_back({.busy = overload ? 1.0 : 0.1});
    counts.met += 10;
    counts.late += second < 2 ? 100 : 0;
  }
  EXPECT_THAT(model.WhyMissed(lanes), HasSubstr("lanes are 100 % busy"));
}

TEST(LiveModel, RemembersItsWindow) {
  LiveModel model(Millis(50));
  Counts counts{.met = 5};
  model.Second(Total(counts), {});  // ended before anybody watched
  EXPECT_EQ(model.Last().ended[0], 0u);
  for (int second = 1; second <= 30; ++second) {
    for (int i = 0; i < 2000; ++i) {
      const bool met = i % 100 < 98;
      LiveMoments::Answer answer =
          Answered(met ? Outcome::kMet : Outcome::kLate, Millis(met ? second : 90));
      answer.record.exit = i % 2;
      model.Note(answer);
    }
    model.Note(Answered(Outcome::kShed, Millis(5000)));
    counts.met += 2000;
    model.Second(Total(counts), {});
  }
  const LiveModel::Window last = model.Last();
  EXPECT_EQ(last.ended[0], 20'000u);
  EXPECT_EQ(last.seconds, 10);
  EXPECT_THAT(last.exits, ElementsAre(10'000, 10'000));
  EXPECT_NEAR(ToMillis(last.p50), 25.5, 1.5) << "of the seconds 21 to 30";
  EXPECT_EQ(ToMillis(last.p99), 90) << "and of no call that was given up";
}

}  // namespace
}  // namespace tactus
