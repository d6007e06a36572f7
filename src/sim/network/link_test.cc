// Without these a link could send more than its rate, or what is dead could hold up what is alive.
#include "sim/network/link.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

TimePoint AtSecond(double seconds) { return kStart + FromSeconds(seconds); }
double SecondsOf(TimePoint t) { return ToSeconds(t - kStart); }

TEST(RateTrace, IntegratesOverItsSteps) {
  const RateTrace trace({{AtSecond(0), 8}, {AtSecond(1), 2}, {AtSecond(3), 0}, {AtSecond(5), 4}},
                        Duration{});
  // 8 Mbit in the first second, 4 in the next two, none in two, then 4 a second.
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(0), 4e6)), 0.5, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(0), 9e6)), 1.5, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(0), 12e6)), 3, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(0), 13e6)), 5.25, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(4), 1e6)), 5.25, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(2.5), 3e6)), 5.5, 1e-9);
}

TEST(RateTrace, BeginsAnewAfterItsPeriod) {
  const RateTrace trace({{AtSecond(0), 1}, {AtSecond(1), 3}}, Seconds(2));  // 4 Mbit each 2 s
  EXPECT_EQ(trace.At(AtSecond(4.5)), 1);
  EXPECT_EQ(trace.At(AtSecond(7.5)), 3);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(0.5), 40e6)), 20.5, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(1.5), 2.5e6)), 3 + 0, 1e-9);
}

TEST(RateTrace, SaysThatWhatNeverGoesThroughNeverEnds) {
  EXPECT_EQ(RateTrace(0).EndOf(AtSecond(1), 1), kNever);
  EXPECT_EQ(RateTrace({{AtSecond(0), 0}}, Seconds(1)).EndOf(AtSecond(1), 1), kNever);
}

TEST(RateTrace, TakesAnOutage) {
  RateTrace trace({{AtSecond(0), 8}, {AtSecond(2), 4}, {AtSecond(4), 2}}, Duration{});
  trace.AddOutage(AtSecond(1), AtSecond(3));
  EXPECT_EQ(trace.At(AtSecond(0.5)), 8);
  EXPECT_EQ(trace.At(AtSecond(1)), 0);
  EXPECT_EQ(trace.At(AtSecond(2.9)), 0);
  EXPECT_EQ(trace.At(AtSecond(3)), 4);
  EXPECT_EQ(trace.At(AtSecond(4)), 2);
  EXPECT_NEAR(SecondsOf(trace.EndOf(AtSecond(0), 10e6)), 3.5, 1e-9);
}

TEST(RateTrace, HasQuantilesByTime) {
  const RateTrace trace({{AtSecond(0), 10}, {AtSecond(3), 1}, {AtSecond(4), 20}}, Duration{});
  EXPECT_EQ(trace.Quantile(AtSecond(0), AtSecond(8), 0.1), 1);
  EXPECT_EQ(trace.Quantile(AtSecond(0), AtSecond(8), 0.25), 10);
  EXPECT_EQ(trace.Quantile(AtSecond(0), AtSecond(8), 0.9), 20);
  EXPECT_EQ(trace.Quantile(AtSecond(5), AtSecond(5), 0.5), 20);
}

// D/D/1 by hand: the k-th of a burst is through after (k + 1) service times.
TEST(Link, ServesABurstInTurn) {
  Link link({.rate = RateTrace(8), .latency = Millis(10)});
  for (int k = 0; k < 20; ++k) {
    const Sending sent = link.Send(AtSecond(1), 1e4, kNever);
    EXPECT_EQ(sent.outcome, SendOutcome::kDelivered);
    EXPECT_NEAR(SecondsOf(sent.at), 1 + 0.01 * (k + 1) + 0.01, 1e-9);
  }
  EXPECT_NEAR(ToSeconds(link.totals().busy), 0.2, 1e-9);
}

// Lindley's recursion W' = max(0, W + S - A) over random gaps and sizes, in whole nanoseconds: two
// bytes take one microsecond, so that nothing is rounded and the link must agree exactly.
TEST(Link, KeepsLindleysRecursion) {
  Rng rng = Rng::Stream(3, "link");
  Link link({.rate = RateTrace(16), .latency = Millis(5), .most_waiting = 1e18});
  TimePoint now = kStart;
  Duration wait{};
  for (int i = 0; i < 20000; ++i) {
    const Duration gap = Nanos(static_cast<std::int64_t>(rng.Below(12'000'000)));
    const auto pairs = static_cast<std::int64_t>(1 + rng.Below(10'000));
    now += gap;
    wait = std::max(Duration{}, wait - gap);
    const Sending sent = link.Send(now, 2.0 * static_cast<double>(pairs), kNever);
    wait += Micros(pairs);
    ASSERT_EQ(sent.at, now + wait + Millis(5)) << "message " << i;
  }
}

// Where a message takes no whole number of nanoseconds the link rounds its end up: by less than
// one, against the closed form from where the link became free.
TEST(Link, RoundsEachMessageUpByLessThanANanosecond) {
  Rng rng = Rng::Stream(4, "link");
  Link link({.rate = RateTrace(17), .most_waiting = 1e18});
  TimePoint now = kStart, free_at = kStart;
  for (int i = 0; i < 20000; ++i) {
    now += Nanos(static_cast<std::int64_t>(rng.Below(12'000'000)));
    const double bytes = 20'000 * rng.Uniform();
    const Sending sent = link.Send(now, bytes, kNever);
    const double took = ToSeconds(sent.at - std::max(now, free_at));
    ASSERT_GE(took, bytes * 8 / 17e6 - 1e-14) << "message " << i;
    ASSERT_LT(took, bytes * 8 / 17e6 + 1e-9) << "message " << i;
    free_at = sent.at;
  }
}

// Of ten packets each is lost with a chance of 0.1 and sent again a round trip later: the sum over
// k of 1 - (1 - 0.1^k)^10 times in the mean. Losses take a ninth of the link besides.
TEST(Link, SendsAgainWhatIsLost) {
  Link link({.rate = RateTrace(9), .latency = Millis(10), .loss = 0.1});
  double rounds = 0, expected = 0;
  for (int k = 1; k < 12; ++k) expected += 1 - std::pow(1 - std::pow(0.1, k), 10);
  constexpr int kMessages = 20000;
  for (int i = 0; i < kMessages; ++i) {
    const Sending sent = link.Send(AtSecond(i), 15'000, kNever);
    const double after = SecondsOf(sent.at) - i - 15'000 * 8 / 8.1e6 - 0.01;
    const double times = std::round(after / 0.02);
    ASSERT_NEAR(after, 0.02 * times, 1e-8) << "whole round trips, message " << i;
    rounds += times;
  }
  EXPECT_NEAR(rounds / kMessages, expected, 0.02);
  EXPECT_NEAR(ToSeconds(link.totals().busy), kMessages * 15e3 * 8 / 8.1e6, 1e-3);
}

TEST(Link, DropsWhatWouldComeTooLateBeforeItIsSent) {
  Link link({.rate = RateTrace(8), .latency = Millis(10)});
  EXPECT_EQ(link.Send(AtSecond(0), 1e5, kNever).outcome, SendOutcome::kDelivered);  // until 0.1 s
  // It would be sent from 0.1 to 0.2 s and be there at 0.21 s.
  EXPECT_EQ(link.Send(AtSecond(0), 1e5, AtSecond(0.2)),
            (Sending{SendOutcome::kDead, AtSecond(0.1)}));
  // And so holds up nobody.
  EXPECT_EQ(link.Send(AtSecond(0), 1e5, AtSecond(0.21)),
            (Sending{SendOutcome::kDelivered, AtSecond(0.21)}));
  EXPECT_EQ(link.totals().dead, 1);
}

TEST(Link, DropsWhileItStandsStill) {
  Link link({.rate = RateTrace(8)});
  link.AddOutage(AtSecond(1), AtSecond(2));
  EXPECT_EQ(link.Send(AtSecond(1.5), 100, AtSecond(1.7)).outcome, SendOutcome::kDead);
  // What is under way goes on after the outage: 0.1 s before it, 0.1 s after.
  EXPECT_EQ(link.Send(AtSecond(2), 100, AtSecond(3)).outcome, SendOutcome::kDelivered);
  Link other({.rate = RateTrace(8)});
  other.AddOutage(AtSecond(1), AtSecond(2));
  EXPECT_EQ(other.Send(AtSecond(0.9), 2e5, AtSecond(1.2)),
            (Sending{SendOutcome::kDelivered, AtSecond(2.1)}));
}

TEST(Link, DropsWhatFindsItsQueueFull) {
  Link link({.rate = RateTrace(8), .most_waiting = 2e4});
  EXPECT_EQ(link.Send(AtSecond(0), 1e4, kNever).outcome, SendOutcome::kDelivered);
  EXPECT_EQ(link.Send(AtSecond(0), 1e4, kNever).outcome, SendOutcome::kDelivered);
  EXPECT_EQ(link.Send(AtSecond(0), 1e4, kNever).outcome, SendOutcome::kDelivered);
  EXPECT_EQ(link.Send(AtSecond(0), 1e4, kNever), (Sending{SendOutcome::kFull, AtSecond(0)}));
  // The second is being sent: there is room for another.
  EXPECT_EQ(link.Send(AtSecond(0.01), 1e4, kNever).outcome, SendOutcome::kDelivered);
}

}  // namespace
}  // namespace tactus
