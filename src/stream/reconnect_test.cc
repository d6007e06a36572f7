#include "stream/reconnect.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

// Without this, a dead camera would be asked as often as the machine can.
TEST(Reconnect, DoublesTheWaitUpToSixteenIntervals) {
  Reconnect reconnect({.interval = Millis(500), .attempts = 0});
  std::vector<double> waits;
  for (int i = 0; i < 7; ++i) waits.push_back(ToMillis(*reconnect.Lost()));
  EXPECT_EQ(waits, (std::vector<double>{500, 1000, 2000, 4000, 8000, 8000, 8000}));
}

// Without this, a camera that drops its connection once a minute would wait longer each time.
TEST(Reconnect, AFrameBeginsAnew) {
  Reconnect reconnect({.interval = Seconds(1), .attempts = 2});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(reconnect.Lost(), Seconds(1));
    EXPECT_EQ(reconnect.Lost(), Seconds(2));
    reconnect.Arrived();
  }
}

// Without this, a wrong address would be tried for ever.
TEST(Reconnect, GivesUpAfterSoManyAttempts) {
  Reconnect reconnect({.interval = Seconds(1), .attempts = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reconnect.Lost());
  EXPECT_FALSE(reconnect.Lost());
}

}  // namespace
}  // namespace tactus
