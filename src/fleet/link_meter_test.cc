// Without these a plan would be made for links that are not as they are said to be.
#include "fleet/link_meter.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr TimePoint kMeasuredAt = kStart + Seconds(100);

TEST(LinkMeter, TellsRateAndRoundTripApart) {
  LinkMeter meter;
  EXPECT_EQ(meter.Read(kMeasuredAt), LinkReading{});
  meter.AddProbe(kMeasuredAt, Millis(25));
  meter.AddProbe(kMeasuredAt, Millis(20));
  // 100 kB over 8 Mbit/s, and the round trip.
  for (int i = 0; i < 10; ++i) meter.AddCall(kMeasuredAt, 100'000, Millis(120));
  EXPECT_EQ(meter.Read(kMeasuredAt).rtt, Millis(20));
  EXPECT_NEAR(meter.Read(kMeasuredAt).mbps, 8, 1e-9);
}

TEST(LinkMeter, CountsOnTheSlowerPartOfTheLastMinute) {
  LinkMeter meter;
  for (int i = 0; i < 12; ++i) meter.AddCall(kMeasuredAt, 100'000, Millis(i % 4 == 0 ? 400 : 100));
  EXPECT_NEAR(meter.Read(kMeasuredAt).mbps, 8, 1e-9) << "the 25th percentile";
  for (int i = 0; i < 4; ++i) meter.AddCall(kMeasuredAt + Seconds(50), 100'000, Millis(400));
  EXPECT_NEAR(meter.Read(kMeasuredAt + Seconds(50)).mbps, 2, 1e-9);
  EXPECT_NEAR(meter.Read(kMeasuredAt + Seconds(70)).mbps, 2, 1e-9) << "the earlier ones are over";
  EXPECT_EQ(meter.Read(kMeasuredAt + Seconds(111)).mbps, 0) << "nobody knows any more";
}

TEST(LinkMeter, SmallCallsSayNothingOfTheRate) {
  LinkMeter meter;
  meter.AddCall(kMeasuredAt, LinkMeter::kLeastBytes - 1, Millis(5));
  EXPECT_EQ(meter.Read(kMeasuredAt).mbps, 0);
  meter.AddProbe(kMeasuredAt, Millis(6));
  meter.AddCall(kMeasuredAt, LinkMeter::kLeastBytes, Millis(5));
  EXPECT_LE(meter.Read(kMeasuredAt).mbps, 100'000) << "quicker than a probe: fast, and finite";
}

}  // namespace
}  // namespace tactus
