// Without these a plan could be made for the rate of a quiet quarter of a minute.
#include "fleet/rate_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

auto Rate(double rps) { return Field(&ModelRate::rate_rps, DoubleNear(rps, 1e-9)); }

TEST(RateWindows, TheBusiestWindowCountsAndWhatWasBeforeDoesNot) {
  RateWindows rates;
  std::uint64_t count = 1000;
  for (int s = 0; s <= 60; ++s) {
    rates.Add(kStart + Seconds(s), {{"busy", count}, {"never", 0}});
    if (s == 14) {
      EXPECT_THAT(rates.Rates(), IsEmpty());
    }
    if (s < 30) count += 10;
  }
  // Nothing for 15 and 30 s, 300 in the whole minute.
  EXPECT_THAT(rates.Rates(), ElementsAre(Rate(5)));
  for (int s = 61; s <= 90; ++s) rates.Add(kStart + Seconds(s), {{"busy", count}});
  EXPECT_THAT(rates.Rates(), ElementsAre(Rate(0)));
}

TEST(RateWindows, ACountThatBeginsAnewIsNoRequestLost) {
  RateWindows rates;
  for (int s = 0; s <= 15; ++s) {
    rates.Add(kStart + Seconds(s), {{"m", s < 8 ? 100u + 2u * s : 2u * (s - 8)}});
  }
  EXPECT_THAT(rates.Rates(), ElementsAre(Rate(28.0 / 15)));
}

}  // namespace
}  // namespace tactus
