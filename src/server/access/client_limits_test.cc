// Without these one client could have all of the server, or lose its place for good.
#include "server/access/client_limits.h"

#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

using Taken = ByteBudget::Taken;
using Clock = ClientLimits::Clock;

constexpr Clock::time_point kNow{std::chrono::hours(1)};

TEST(ClientLimits, CallsOfOneClientLeaveRoomForOthers) {
  ClientLimits limits({.calls = 2});
  auto first = limits.Begin("a", kNow);
  auto second = limits.Begin("a", kNow);
  ASSERT_TRUE(first.has_value() && second.has_value());
  const auto third = limits.Begin("a", kNow);
  ASSERT_FALSE(third.has_value());
  EXPECT_NE(third.error().text.find("2 calls"), std::string::npos) << third.error().text;
  EXPECT_EQ(third.error().retry_after, 1);
  EXPECT_TRUE(limits.Begin("b", kNow).has_value());
  first = {};
  EXPECT_TRUE(limits.Begin("a", kNow).has_value());
}

TEST(ClientLimits, ConnectionsAreCountedApart) {
  ClientLimits limits({.calls = 1, .connections = 1});
  auto connection = limits.Connect("a");
  ASSERT_TRUE(connection.has_value());
  EXPECT_FALSE(limits.Connect("a").has_value());
  EXPECT_TRUE(limits.Begin("a", kNow).has_value());
  connection = ClientLimits::Lease();
  EXPECT_TRUE(limits.Connect("a").has_value());
}

TEST(ClientLimits, ARateAllowsASecondsBurstAndSaysHowLongToWait) {
  ClientLimits limits({.rate = 4});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limits.Begin("a", kNow).has_value()) << i;
  EXPECT_FALSE(limits.Begin("a", kNow).has_value());
  EXPECT_TRUE(limits.Begin("a", kNow + std::chrono::milliseconds(250)).has_value());
  EXPECT_FALSE(limits.Begin("a", kNow + std::chrono::milliseconds(250)).has_value());
  // However long it is idle, it has no more than a second's.
  int more = 0;
  while (limits.Begin("a", kNow + std::chrono::hours(1))) ++more;
  EXPECT_EQ(more, 4);

  ClientLimits slow({.rate = 0.1});
  EXPECT_TRUE(slow.Begin("a", kNow).has_value());
  EXPECT_EQ(slow.Begin("a", kNow).error().retry_after, 10);
}

TEST(ClientLimits, BytesAreTheClientsAndTheServers) {
  ClientLimits limits({.bytes = 60, .all_bytes = 100});
  const auto a = limits.Begin("a", kNow);
  const auto b = limits.Begin("b", kNow);
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_EQ(a->bytes->Take(60), Taken::kYes);
  EXPECT_EQ(a->bytes->Take(1), Taken::kBeyondLimit);
  EXPECT_EQ(b->bytes->Take(41), Taken::kBeyondWhole);
  EXPECT_EQ(b->bytes->used(), 0u);
  EXPECT_EQ(b->bytes->Take(40), Taken::kYes);
  a->bytes->Give(60);
  EXPECT_EQ(limits.all_bytes()->used(), 40u);
  b->bytes->Give(40);
}

TEST(ClientLimits, ClientsThatHaveNothingAreForgotten) {
  ClientLimits limits({});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limits.Begin(std::to_string(i), kNow).has_value());
  EXPECT_EQ(limits.known(), 0u);
  ClientLimits rated({.rate = 1});
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(rated.Begin(std::to_string(i), kNow).has_value());
  EXPECT_LE(rated.known(), 4097u);
}

TEST(ClientLimits, AreReadByName) {
  ClientLimitOptions options;
  ASSERT_TRUE(ReadClientLimits("calls=64,rate=100.5,mb=256,connections=32", options).has_value());
  EXPECT_EQ(options.calls, 64u);
  EXPECT_EQ(options.rate, 100.5);
  EXPECT_EQ(options.bytes, std::size_t{256} << 20);
  EXPECT_EQ(options.connections, 32u);
  for (const std::string bad : {"calls", "calls=", "calls=0", "calls=1.5", "rate=-1", "rate=nan",
                                "size=3", "mb=1e300", "calls=1;rate=2"}) {
    const Status read = ReadClientLimits(bad, options);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_NE(read.error().message.find("calls=N"), std::string::npos);
  }
  const Status twice = ReadClientLimits("calls=2,mb=1,calls=3", options);
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().message, "'calls' is given twice; state it once");
}

}  // namespace
}  // namespace tactus
