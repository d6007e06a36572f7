#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/autoscale/advice.h"
#include "planners/autoscale/lane_adviser.h"
#include "planners/autoscale/load_window.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

// Symphony, 3.5: a cluster whose peak is p, offered o > p, misses (o - p) / o and needs o / p times
// its lanes.
TEST(AdviseLanes, AsksForWhatTheLoadNeeds) {
  const struct {
    LoadReading reading;
    int lanes;
    const char* why;
  } cases[] = {
      {{.lanes = 10, .requests = 100, .bad_ratio = 0.2, .idle_ratio = 0}, 13, "10 / 0.8 = 12.5"},
      {{.lanes = 4, .requests = 100, .bad_ratio = 0.2, .idle_ratio = 0}, 5, "exactly 5, not 6"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0.009, .idle_ratio = 0.05}, 10, "good enough"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0.011, .idle_ratio = 0.5},
       11,
       "bad comes first"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0.9, .idle_ratio = 0.1, .untouched = 1},
       10,
       "one was free all along"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0.9, .idle_ratio = 0.95, .untouched = 7},
       3,
       "those that ran something may all have been needed at once"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0.9, .idle_ratio = 0.55, .untouched = 7},
       5,
       "no more than idleness gives back"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0, .idle_ratio = 0.95, .untouched = 7},
       2,
       "no violations: as ever"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0.9, .idle_ratio = 0}, 20, "twice at the most"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 1, .idle_ratio = 0}, 20, "no division by 0"},
      {{.lanes = 1, .requests = 100, .bad_ratio = 0.02, .idle_ratio = 0}, 2, "one is not enough"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0, .idle_ratio = 0.19}, 10, "in the gap"},
      {{.lanes = 10, .requests = 100, .bad_ratio = 0, .idle_ratio = 0.55}, 5, "10 * 0.45 / 0.9"},
      {{.lanes = 10, .requests = 0, .bad_ratio = 0, .idle_ratio = 1}, 2, "never below the least"},
      {{.lanes = 30, .requests = 9, .bad_ratio = 0.5, .idle_ratio = 0}, 40, "nor above the most"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(AdviseLanes(c.reading, {.least = 2, .most = 40}), c.lanes) << c.why;
  }
}

// Without room the rule is the paper's: N f lanes go.
TEST(AdviseLanes, GivesBackAllThatIsIdleWhenNoneIsToBeKept) {
  const AutoscaleOptions paper{.idle_threshold = 0, .idle_kept = 0};
  for (int idle = 1; idle < 24; ++idle) {
    const LoadReading reading{.lanes = 24, .requests = 1, .idle_ratio = idle / 24.0};
    EXPECT_EQ(AdviseLanes(reading, paper), 24 - idle);
  }
}

// Advice that is followed must not ask for the opposite next: lanes would come and go forever.
TEST(AdviseLanes, ComesToRest) {
  for (int lanes = 1; lanes <= 200; ++lanes) {
    for (double needed = 0.1; needed < 150; needed *= 1.3) {
      int now = lanes;
      int changes = 0;
      for (int round = 0; round < 30; ++round) {
        const LoadReading reading{.lanes = now,
                                  .requests = 1000,
                                  .bad_ratio = needed > now ? (needed - now) / needed : 0,
                                  .idle_ratio = needed > now ? 0 : 1 - needed / now};
        const int next = AdviseLanes(reading, {});
        changes += next != now;
        now = next;
      }
      // Violations below the threshold may stay.
      EXPECT_GE(now, 0.99 * needed) << lanes << " lanes, " << needed << " needed";
      EXPECT_LE(now, std::max(1.0, needed / 0.8 + 1)) << lanes << " lanes, " << needed;
      EXPECT_LE(changes, 10);
    }
  }
}

TEST(AutoscaleOptions, AreRefusedWhereTheyContradictThemselves) {
  EXPECT_TRUE(Validate(AutoscaleOptions{}));
  const auto problem = [](AutoscaleOptions options) { return Validate(options).error().message; };
  EXPECT_THAT(problem({.bad_threshold = 1}), HasSubstr("bad_threshold"));
  EXPECT_THAT(problem({.idle_threshold = -0.1}), HasSubstr("idle_threshold"));
  EXPECT_THAT(problem({.idle_threshold = 0.1, .idle_kept = 0.2}), HasSubstr("idle_kept"));
  EXPECT_THAT(problem({.most_growth = 1}), HasSubstr("most_growth"));
  EXPECT_THAT(problem({.least = 5, .most = 4}), HasSubstr("from 1 to the most, which is 4"));
}

ServiceTotals At(int second, int good, int bad, int busy, int available) {
  return {kStart + Seconds(second), good, bad, Seconds(busy), Seconds(available)};
}

// Old trouble must be forgotten, and recent trouble must not be thinned by old quiet.
TEST(LoadWindow, SeesTheLastSecondsOnly) {
  LoadWindow window(Seconds(10));
  EXPECT_EQ(window.Read(3).requests, 0);
  window.Add(At(0, 0, 0, 0, 0));
  EXPECT_EQ(window.Read(3).idle_ratio, 1);
  window.Add(At(5, 50, 50, 10, 10));  // all busy, half bad
  EXPECT_DOUBLE_EQ(window.Read(2).bad_ratio, 0.5);
  EXPECT_DOUBLE_EQ(window.Read(2).idle_ratio, 0);
  window.Add(At(10, 150, 50, 15, 20));
  EXPECT_DOUBLE_EQ(window.Read(2).bad_ratio, 0.25);
  window.Add(At(15, 250, 50, 20, 30));  // since second 5: 200 good, busy 10 of 20
  EXPECT_EQ(window.Read(2).requests, 200);
  EXPECT_EQ(window.Read(2).bad_ratio, 0);
  EXPECT_DOUBLE_EQ(window.Read(2).idle_ratio, 0.5);
  EXPECT_EQ(window.Read(2).lanes, 2);
}

// What is late although a lane was always free must not ask for more of them: on a machine that
// wakes the server late, advice for 512 lanes that are idle would say 518.
TEST(LoadWindow, CountsTheLanesThatRanNothing) {
  LoadWindow window(Seconds(10));
  const auto add = [&](int second, std::vector<std::int64_t> batches) {
    ServiceTotals totals = At(second, 0, 0, 0, 0);
    totals.batches = std::move(batches);
    window.Add(totals);
    return window.Read(3).untouched;
  };
  add(0, {5, 5, 5, 0});
  EXPECT_EQ(add(5, {6, 5, 5, 0}), 2) << "the fourth is not there";
  EXPECT_EQ(add(10, {7, 6, 5, 0}), 1);
  EXPECT_EQ(add(15, {7, 6, 6, 0}), 0) << "each ran something since second 5";
  EXPECT_EQ(add(21, {9, 6, 6, 0}), 1);
  EXPECT_EQ(add(30, {}), 0) << "not known";
}

// Somebody who asks every millisecond must see the same window as one who asks every second.
TEST(LoadWindow, IsNoShorterForThoseWhoLookOften) {
  LoadWindow window(Seconds(10));
  for (int ms = 0; ms <= 60'000; ++ms) {
    // Bad in the first half minute, good after.
    const std::int64_t bad = std::min(ms, 30'000), good = std::max(0, ms - 30'000);
    window.Add({kStart + Millis(ms), good, bad, Millis(ms / 2), Millis(ms)});
    if (ms == 35'000) {
      EXPECT_NEAR(window.Read(1).bad_ratio, 0.5, 0.02);
    }
  }
  EXPECT_NEAR(static_cast<double>(window.Read(1).requests), 10'000, 200);
  EXPECT_EQ(window.Read(1).bad_ratio, 0);
  EXPECT_NEAR(window.Read(1).idle_ratio, 0.5, 1e-3);
}

// A server that has just started was idle; told to give its lanes back it would never serve.
TEST(LaneAdviser, GivesNothingBackBeforeItHasSeenAWholeWindow) {
  LaneAdviser adviser({}, Seconds(10));
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(adviser.Take(At(second, 0, 0, 0, 4 * second), 4).advised, 4) << second;
  }
  EXPECT_EQ(adviser.Take(At(10, 0, 0, 0, 40), 4).advised, 1);
}

TEST(LaneAdviser, AsksForMoreAtOnce) {
  LaneAdviser adviser({}, Seconds(10));
  adviser.Take(At(0, 0, 0, 0, 0), 4);
  const LaneAdvice advice = adviser.Take(At(1, 80, 20, 4, 4), 4);
  EXPECT_EQ(advice.advised, 5);
  EXPECT_DOUBLE_EQ(advice.reading.bad_ratio, 0.2);
  EXPECT_EQ(advice.reading.requests, 100);
}

// The trouble of four lanes is none of eight: asked for twice, they would be there twice.
TEST(LaneAdviser, StartsAnewWhenTheLanesChange) {
  LaneAdviser adviser({}, Seconds(10));
  adviser.Take(At(0, 0, 0, 0, 0), 4);
  EXPECT_EQ(adviser.Take(At(10, 500, 500, 40, 40), 4).advised, 8);
  const LaneAdvice fresh = adviser.Take(At(11, 500, 500, 40, 48), 8);
  EXPECT_EQ(fresh.advised, 8);
  EXPECT_EQ(fresh.reading.requests, 0);
  EXPECT_EQ(adviser.Take(At(12, 600, 500, 46, 56), 8).advised, 8);
}

TEST(LaneAdviser, KeepsToItsLimits) {
  LaneAdviser adviser({.least = 2, .most = 6}, Seconds(1));
  adviser.Take(At(0, 0, 0, 0, 0), 4);
  EXPECT_EQ(adviser.Take(At(1, 0, 100, 4, 4), 4).advised, 6);
  EXPECT_EQ(adviser.Take(At(2, 0, 100, 4, 8), 4).advised, 2);
  EXPECT_EQ(adviser.Take(At(3, 0, 100, 4, 16), 8).advised, 6) << "more than the most already";
}

}  // namespace
}  // namespace tactus
