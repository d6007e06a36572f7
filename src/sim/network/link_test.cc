// Without these a link could send more than its rate, or what is dead could hold up what is alive.
#include "sim/network/link.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

TimePoint At(double seconds) { return kStart + FromSeconds(seconds); }
double SecondsOf(TimePoint t) { return ToSeconds(t - kStart); }

TEST(RateTrace, IntegratesOverItsSteps) {
  const RateTrace trace({{At(0), 8}, {At(1), 2}, {At(3), 0}, {At(5), 4}}, Duration{});
  // 8 Mbit in the first second, 4 in the next two, none in two, then 4 a second.
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(0), 4e6)), 0.5, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(0), 9e6)), 1.5, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(0), 12e6)), 3, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(0), 13e6)), 5.25, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(4), 1e6)), 5.25, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(2.5), 3e6)), 5.5, 1e-9);
}

TEST(RateTrace, BeginsAnewAfterItsPeriod) {
  const RateTrace trace({{At(0), 1}, {At(1), 3}}, Seconds(2));  // 4 Mbit each 2 s
  EXPECT_EQ(trace.At(At(4.5)), 1);
  EXPECT_EQ(trace.At(At(7.5)), 3);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(0.5), 40e6)), 20.5, 1e-9);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(1.5), 2.5e6)), 3 + 0, 1e-9);
}

TEST(RateTrace, SaysThatWhatNeverGoesThroughNeverEnds) {
  EXPECT_EQ(RateTrace(0).EndOf(At(1), 1), kNever);
  EXPECT_EQ(RateTrace({{At(0), 0}}, Seconds(1)).EndOf(At(1), 1), kNever);
}

TEST(RateTrace, TakesAnOutage) {
  RateTrace trace({{At(0), 8}, {At(2), 4}, {At(4), 2}}, Duration{});
  trace.AddOutage(At(1), At(3));
  EXPECT_EQ(trace.At(At(0.5)), 8);
  EXPECT_EQ(trace.At(At(1)), 0);
  EXPECT_EQ(trace.At(At(2.9)), 0);
  EXPECT_EQ(trace.At(At(3)), 4);
  EXPECT_EQ(trace.At(At(4)), 2);
  EXPECT_NEAR(SecondsOf(trace.EndOf(At(0), 10e6)), 3.5, 1e-9);
}

TEST(RateTrace, HasQuantilesByTime) {
  const RateTrace trace({{At(0), 10}, {At(3), 1}, {At(4), 20}}, Duration{});
  EXPECT_EQ(trace.Quantile(At(0), At(8), 0.1), 1);
  EXPECT_EQ(trace.Quantile(At(0), At(8), 0.25), 10);
  EXPECT_EQ(trace.Quantile(At(0), At(8), 0.9), 20);
  EXPECT_EQ(trace.Quantile(At(5), At(5), 0.5), 20);
}

// D/D/1 by hand: the k-th of a burst is through after (k + 1) service times.
TEST(Link, ServesABurstInTurn) {
  Link link({.rate = RateTrace(8), .latency = Millis(10)});
  for (int k = 0; k < 20; ++k) {
    const Sending sent = link.Send(At(1), 1e4, kNever);
    EXPECT_EQ(sent.outcome, SendOutcome::kDelivered);
    EXPECT_NEAR(SecondsOf(sent.at), 1 + 0.01 * (k + 1) + 0.01, 1e-9);
  }
  EXPECT_NEAR(ToSeconds(link.totals().busy), 0.2, 1e-9);
}

// Lindley's recursion W' = max(0, W + S - A) over random gaps and sizes.
TEST(Link, KeepsLindleysRecursion) {
  Rng rng = Rng::Stream(3, "link");
  Link link({.rate = RateTrace(16), .latency = Millis(5), .most_waiting = 1e18});
  double now = 0, wait = 0;
  for (int i = 0; i < 20000; ++i) {
    const double gap = 1e-9 * static_cast<double>(rng.Below(12'000'000));
    const double bytes = 2.0 * static_cast<double>(1 + rng.Below(10'000));
    now += gap;
    wait = std::max(0.0, wait - gap);
    const Sending sent = link.Send(At(now), bytes, kNever);
    wait += bytes * 8 / 16e6;
    ASSERT_NEAR(SecondsOf(sent.at), now + wait + 0.005, 1e-8) << "message " << i;
    wait = SecondsOf(sent.at) - now - 0.005;  // errors do not add up
  }
}

TEST(Link, DropsWhatWouldComeTooLateBeforeItIsSent) {
  Link link({.rate = RateTrace(8), .latency = Millis(10)});
  EXPECT_EQ(link.Send(At(0), 1e5, kNever).outcome, SendOutcome::kDelivered);  // until 0.1 s
  // It would be sent from 0.1 to 0.2 s and be there at 0.21 s.
  EXPECT_EQ(link.Send(At(0), 1e5, At(0.2)), (Sending{SendOutcome::kDead, At(0.1)}));
  // And so holds up nobody.
  EXPECT_EQ(link.Send(At(0), 1e5, At(0.21)), (Sending{SendOutcome::kDelivered, At(0.21)}));
  EXPECT_EQ(link.totals().dead, 1);
}

TEST(Link, DropsWhileItStandsStill) {
  Link link({.rate = RateTrace(8)});
  link.AddOutage(At(1), At(2));
  EXPECT_EQ(link.Send(At(1.5), 100, At(1.7)).outcome, SendOutcome::kDead);
  // What is under way goes on after the outage: 0.1 s before it, 0.1 s after.
  EXPECT_EQ(link.Send(At(2), 100, At(3)).outcome, SendOutcome::kDelivered);
  Link other({.rate = RateTrace(8)});
  other.AddOutage(At(1), At(2));
  EXPECT_EQ(other.Send(At(0.9), 2e5, At(1.2)), (Sending{SendOutcome::kDelivered, At(2.1)}));
}

TEST(Link, DropsWhatFindsItsQueueFull) {
  Link link({.rate = RateTrace(8), .most_waiting = 2e4});
  EXPECT_EQ(link.Send(At(0), 1e4, kNever).outcome, SendOutcome::kDelivered);
  EXPECT_EQ(link.Send(At(0), 1e4, kNever).outcome, SendOutcome::kDelivered);
  EXPECT_EQ(link.Send(At(0), 1e4, kNever).outcome, SendOutcome::kDelivered);
  EXPECT_EQ(link.Send(At(0), 1e4, kNever), (Sending{SendOutcome::kFull, At(0)}));
  // The second is being sent: there is room for another.
  EXPECT_EQ(link.Send(At(0.01), 1e4, kNever).outcome, SendOutcome::kDelivered);
}

}  // namespace
}  // namespace tactus
