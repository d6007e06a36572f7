// Bodies that are read in vain must not cost those that are answered their time, and a gate that
// has closed must open again.
#include "pipeline/body_gate.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include <gtest/gtest.h>

namespace tactus {
namespace {

using End = AdmissionWindow::End;

constexpr Duration kGatedSlo = Millis(100);

// A model that answers one call each `each`, in the order in which they were read, if it still can
// by their deadline; the others it refuses as soon as they are read.
struct GatedModel {
  BodyGate gate;
  TimePoint now = kStart;
  TimePoint free = kStart;
  Duration each = Micros(500);
  std::deque<std::pair<BodyGate::Place, TimePoint>> running;  // and when it is answered
  int read = 0, answered = 0, refused = 0;

  void Come() {
    Settle();
    const auto place = gate.Enter(now + kGatedSlo, now);
    if (!place) {
      ++refused;
      return;
    }
    ++read;
    const TimePoint done = std::max(free, now) + each;
    if (done > place->due) return gate.Leave(*place, End::kInVain, now);
    free = done;
    running.emplace_back(*place, done);
  }
  void Settle() {
    while (!running.empty() && running.front().second <= now) {
      gate.Leave(running.front().first, End::kInTime, running.front().second);
      running.pop_front();
      ++answered;
    }
  }
  // Calls come at this rate for so long.
  void Load(double per_second, Duration how_long) {
    Settle();
    read = answered = refused = 0;
    const TimePoint end = now + how_long;
    for (; now < end; now += FromSeconds(1 / per_second)) Come();
    Settle();
  }
};

TEST(BodyGate, ReadsAllThatIsAnswered) {
  GatedModel script;
  script.Load(1800, Seconds(2));
  EXPECT_EQ(script.refused, 0);
  EXPECT_EQ(script.read, 3600);
}

// Sustains 2,000 a second.
TEST(BodyGate, ReadsAtMostTwiceWhatIsAnsweredHoweverManyCome) {
  for (const double rate : {6000, 20'000, 100'000}) {
    GatedModel script;
    script.Load(rate, Millis(500));  // until the first losses are known
    script.Load(rate, Seconds(2));
    EXPECT_NEAR(script.answered, 4000, 100) << rate;
    EXPECT_LE(script.read, 2.3 * script.answered) << rate;
  }
}

TEST(BodyGate, OpensAgainOnceTheStormIsOver) {
  GatedModel script;
  script.Load(50'000, Seconds(1));
  script.now += 2 * kGatedSlo;
  script.Load(1900, Seconds(1));
  EXPECT_EQ(script.refused, 0);
  EXPECT_NEAR(script.answered, 1900, 25);
}

// A machine that stood still loses all that it had; nobody is shut out for that.
TEST(BodyGate, StaysOpenForABatchAfterEverythingWasLost) {
  GatedModel script;
  script.Load(1500, Millis(200));
  script.free = script.now + Seconds(1);
  script.Load(1500, Millis(1000));
  EXPECT_EQ(script.answered, 0);
  script.now += kGatedSlo;
  script.Load(1900, Seconds(1));
  EXPECT_GE(script.answered, 1700);
}

TEST(BodyGate, ForgetsCallsThatEndedForReasonsOfTheirOwn) {
  BodyGate gate;
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint now = kStart + Millis(i);
    const auto place = gate.Enter(now + kGatedSlo, now);
    ASSERT_TRUE(place);
    gate.Leave(*place, End::kNeither, now);
  }
}

}  // namespace
}  // namespace tactus
