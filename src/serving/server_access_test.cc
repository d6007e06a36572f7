#include "serving/server_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using testing::HasSubstr;

const auto kQuiet = [](const std::string&) {};

std::string WhyNoAccess(const ServeOptions& options) {
  const auto access = ServerAccess::Of(options, kQuiet);
  return access ? "" : access.error().message;
}

// Otherwise a server with a low limit of files would fail in the middle of a call.
TEST(MostConnectionsTest, LeaveRoomForModelsAndTheMetricsPage) {
  const std::size_t fewest = 192 + kPageConnections + 2 * 16;
  const auto refused = MostConnections(fewest - 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("may open 287 files, and needs 288"));
  EXPECT_EQ(MostConnections(fewest), 16u);
  EXPECT_EQ(MostConnections(1000), (1000u - 192 - kPageConnections) / 2);
  EXPECT_EQ(MostConnections(1 << 20), 1024u);
}

// Otherwise a mistyped option would open the server to the network, or limit nobody.
TEST(ServerAccessTest, OptionsThatAreNoUseAreNamed) {
  ServeOptions abroad;
  abroad.address = "0.0.0.0";
  EXPECT_THAT(WhyNoAccess(abroad), HasSubstr("--insecure"));
  abroad.insecure = true;
  EXPECT_EQ(WhyNoAccess(abroad), "");

  ServeOptions limits;
  limits.client_limits = "cals=3";
  EXPECT_THAT(WhyNoAccess(limits), HasSubstr("--client-limits: "));
  ServeOptions objectives;
  objectives.objectives = {"chat"};
  EXPECT_THAT(WhyNoAccess(objectives), HasSubstr("--objective: "));
  ServeOptions peers;
  peers.peer_tls = "/nowhere";
  EXPECT_THAT(WhyNoAccess(peers), HasSubstr("/nowhere"));
}

// Otherwise one client could have all of the server.
TEST(ServerAccessTest, AClientMayHaveThreeQuarters) {
  ServeOptions options;
  options.call_capacity = 8;
  const auto access = ServerAccess::Of(options, kQuiet);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->objectives, nullptr);
  EXPECT_FALSE(access->tls.on());
  const ClientLimitOptions& one = access->limits->options();
  EXPECT_EQ(one.calls, 6u);
  EXPECT_EQ(one.bytes, std::size_t{768} << 20);
  EXPECT_EQ(one.connections, access->connections / 4 * 3);
  options.client_limits = "calls=2";
  EXPECT_EQ(ServerAccess::Of(options, kQuiet)->limits->options().calls, 2u);
}

}  // namespace
}  // namespace tactus
