#include "stream/frame_flow.h"

#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

class Blank final : public Picture {
 public:
  Expected<std::string> Jpeg() override { return std::string("jpeg"); }
};

TimePoint At(double seconds) { return kStart + FromSeconds(seconds); }

// Without this, a stream that the server cannot follow would answer ever older frames, or keep them
// all. 25 frames a second meet a server that takes 200 ms for each, ten minutes long.
TEST(FrameFlow, ServesTheNewestOfFiveTimesTooManyFramesForTenMinutes) {
  FrameFlow flow({.queue = 2, .in_flight = 1, .slo = Millis(400)});
  std::optional<Frame> running;
  TimePoint since, until;
  std::vector<Duration> latencies;
  std::size_t most_waiting = 0;
  for (int i = 0; i < 25 * 600; ++i) {
    const TimePoint now = At(i * 0.04);
    while (running && until <= now) {
      EXPECT_EQ(flow.End(*running, FrameEnd::kServed, since, until), FrameEnd::kServed);
      latencies.push_back(until - running->captured);
      running.reset();
      if ((running = flow.Take(until))) {
        since = until;
        until = since + Millis(200);
      }
    }
    flow.Offer(now, std::make_unique<Blank>());
    if (!running && (running = flow.Take(now))) {
      since = now;
      until = now + Millis(200);
    }
    most_waiting = std::max(most_waiting, flow.waiting());
  }
  EXPECT_NEAR(static_cast<double>(flow.counts().of(FrameEnd::kServed)), 3000, 1);
  EXPECT_EQ(flow.counts().read, 15000u);
  EXPECT_EQ(most_waiting, 2u);
  // One frame interval of waiting at most, in the last minute as in the first.
  EXPECT_LE(*std::max_element(latencies.begin(), latencies.end()), Millis(240));
  EXPECT_EQ(flow.counts().ended() + flow.waiting() + static_cast<unsigned>(flow.in_flight()),
            flow.counts().read);
}

// Without this, a frame would be sent whose answer comes too late by all that is known.
TEST(FrameFlow, SendsNothingThatTheFastestAnswerWouldBeTooLateFor) {
  FrameFlow flow({.queue = 4, .in_flight = 1, .slo = Millis(300)});
  flow.Offer(At(0), std::make_unique<Blank>());
  const auto first = flow.Take(At(0));
  ASSERT_TRUE(first);
  flow.Offer(At(0.05), std::make_unique<Blank>());
  flow.Offer(At(0.15), std::make_unique<Blank>());
  flow.End(*first, FrameEnd::kServed, At(0), At(0.2));
  const auto second = flow.Take(At(0.2));  // 0.05 + 0.3 < 0.2 + 0.2
  ASSERT_TRUE(second);
  EXPECT_EQ(second->number, 3u);
  EXPECT_EQ(flow.counts().of(FrameEnd::kStale), 1u);
}

// Without this, one slow minute of the server would end a stream for ever: all frames stale, so no
// answers, so no news that it is fast again.
// Without this, one slow answer would cost a file that is to be answered whole most of its frames.
TEST(FrameFlow, KeepsWhatMayBeLateWhereEachFrameCounts) {
  for (const bool keeps : {false, true}) {
    FrameFlow flow({.slo = Millis(100), .keeps_stale = keeps});
    flow.Offer(kStart, std::make_unique<Blank>());
    const auto first = flow.Take(kStart);
    ASSERT_TRUE(first);
    EXPECT_EQ(flow.End(*first, FrameEnd::kServed, kStart, kStart + Millis(300)), FrameEnd::kLate);
    flow.Offer(kStart + Millis(300), std::make_unique<Blank>());
    EXPECT_EQ(flow.Take(kStart + Millis(300)).has_value(), keeps);
  }
}

TEST(FrameFlow, TriesAgainWhenTheLastAnswerIsLongAgo) {
  FrameFlow flow({.queue = 1, .in_flight = 1, .slo = Millis(300)});
  flow.Offer(At(0), std::make_unique<Blank>());
  const auto first = flow.Take(At(0));
  ASSERT_TRUE(first);
  EXPECT_EQ(flow.End(*first, FrameEnd::kServed, At(0), At(2)), FrameEnd::kLate);
  flow.Offer(At(3), std::make_unique<Blank>());
  EXPECT_FALSE(flow.Take(At(3)));
  flow.Offer(At(8), std::make_unique<Blank>());
  EXPECT_TRUE(flow.Take(At(8)));
}

// Without this, a frame could be lost without a count, or counted twice.
TEST(FrameFlow, CountsEveryFrameOnceInRandomLives) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::Stream(seed, "flow");
    const auto draw = [&](int n) { return static_cast<int>(rng.Uniform() * n); };
    FrameFlow flow({.every = 1 + draw(3),
                    .most_rate = draw(2) * 12.0,
                    .queue = 1 + draw(4),
                    .in_flight = 1 + draw(3),
                    .slo = Millis(50 + draw(400))});
    struct Flight {
      Frame frame;
      TimePoint sent;
    };
    std::deque<Flight> flights;
    TimePoint now = kStart;
    for (int i = 0; i < 400; ++i) {
      now += Millis(draw(60));
      const int what = draw(10);
      if (what < 5) flow.Offer(now, draw(20) == 0 ? nullptr : std::make_unique<Blank>());
      if (auto frame = flow.Take(now)) flights.push_back({std::move(*frame), now});
      if (what > 6 && !flights.empty()) {
        const auto end = static_cast<FrameEnd>(6 + draw(6));
        flow.End(flights.front().frame, end, flights.front().sent, now);
        flights.pop_front();
      }
      ASSERT_EQ(flow.counts().ended() + flow.waiting() + static_cast<unsigned>(flow.in_flight()),
                flow.counts().read);
    }
    flow.Clear();
    EXPECT_EQ(flow.waiting(), 0u);
    EXPECT_EQ(flow.counts().ended() + flights.size(), flow.counts().read);
  }
}

}  // namespace
}  // namespace tactus
