// A limit that is lost, or one that overflows, would make a request wait for ever or die at once.
#include "service/deadline.h"

#include <initializer_list>
#include <optional>

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr TimePoint kReceived = kStart + Seconds(100);

TimeLimit Of(std::initializer_list<std::optional<Duration>> limits) {
  TimeLimit limit;
  for (const auto& each : limits) limit.Tighten(each);
  return limit;
}

TEST(TimeLimit, TheShortestCountsAndNonsenseIsNone) {
  EXPECT_EQ(Of({}).shortest(), std::nullopt);
  EXPECT_EQ(Of({std::nullopt, std::nullopt}).shortest(), std::nullopt);
  EXPECT_EQ(Of({Micros(5), std::nullopt, Micros(3), Micros(4)}).shortest(), Micros(3));
  EXPECT_EQ(Of({Duration::max()}).shortest(), std::nullopt);
  EXPECT_EQ(Of({Millis(1), Duration::max()}).shortest(), Millis(1));
}

TEST(TimeLimit, IsOverOnceItHasPassed) {
  EXPECT_FALSE(Of({}).IsOver(Seconds(1000)));
  EXPECT_FALSE(Of({Millis(5)}).IsOver(Millis(4)));
  EXPECT_TRUE(Of({Millis(5)}).IsOver(Millis(5)));
  EXPECT_TRUE(Of({Millis(-5)}).IsOver(Duration{}));
}

TEST(DeadlineOf, IsTheEarlierOfModelAndClient) {
  EXPECT_EQ(DeadlineOf(kReceived, Millis(50), {}), kReceived + Millis(50));
  EXPECT_EQ(DeadlineOf(kReceived, Millis(50), Of({Millis(20)})), kReceived + Millis(20));
  EXPECT_EQ(DeadlineOf(kReceived, Millis(50), Of({Millis(70)})), kReceived + Millis(50));
}

TEST(DeadlineOf, SaturatesAtNever) {
  EXPECT_EQ(DeadlineOf(kReceived, Duration::max(), {}), kNever);
  EXPECT_EQ(DeadlineOf(kReceived, Duration::max(), Of({Seconds(1)})), kReceived + Seconds(1));
}

// A server that is late itself must not answer at the last moment; nor have no time at all.
TEST(DeadlineOf, LeavesTimeForTheWayBack) {
  EXPECT_EQ(DeadlineOf(kReceived, Millis(40), {}, Millis(3)), kReceived + Millis(37));
  EXPECT_EQ(DeadlineOf(kReceived, Millis(40), Of({Millis(20)}), Millis(30)),
            kReceived + Millis(15));
  EXPECT_EQ(DeadlineOf(kReceived, Duration::max(), {}, Millis(3)), kNever);
  EXPECT_EQ(DeadlineOf(kReceived, Millis(40), Of({Duration{}}), Millis(3)), kReceived);
}

}  // namespace
}  // namespace tactus
