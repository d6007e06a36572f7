// Without this an agent's worker could be reached at no port that a firewall or a proxy knows, or
// keep the old ports after its agent was told others.
#include "cluster/control/worker_ports.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Arguments = std::vector<std::string>;

std::string WhyNot(Arguments arguments, const Arguments& own = {"--address", "--routes"}) {
  const auto taken = TakeWorkerPorts(arguments, own);
  return taken ? "" : taken.error().message;
}

TEST(WorkerPortsTest, AreTakenOutOfTheOptionsOfTheWorker) {
  Arguments arguments = {"--lanes",          "2",        "--http-port",    "8000",
                         "--grpc-port=8001", "--no-pin", "--metrics-port", "0"};
  const auto ports = TakeWorkerPorts(arguments, {});
  ASSERT_TRUE(ports) << ports.error().message;
  EXPECT_EQ(*ports, (WorkerPorts{.http = 8000, .grpc = 8001}));
  EXPECT_THAT(arguments, ElementsAre("--lanes", "2", "--no-pin"));
  Arguments none;
  EXPECT_EQ(TakeWorkerPorts(none, {}), WorkerPorts{});
  EXPECT_THAT(none, IsEmpty());
}

TEST(WorkerPortsTest, WhatIsNoPortIsNamed) {
  EXPECT_EQ(WhyNot({"--http-port", "80000"}),
            "an option after --: --http-port '80000' is no port: write 1 to 65535, or 0 for any "
            "free one");
  EXPECT_THAT(WhyNot({"--grpc-port=-1"}), HasSubstr("--grpc-port '-1' is no port"));
  EXPECT_THAT(WhyNot({"--grpc-port=8001x"}), HasSubstr("'8001x' is no port"));
  EXPECT_THAT(WhyNot({"--grpc-port="}), HasSubstr("'' is no port"));
  EXPECT_THAT(WhyNot({"--lanes", "2", "--metrics-port"}), HasSubstr("'' is no port"));
  EXPECT_EQ(WhyNot({"--http-port", "8000", "--metrics-port", "8000"}),
            "an option after --: --http-port and --metrics-port are both 8000; give each its own "
            "port");
  EXPECT_EQ(WhyNot({"--http-port", "0", "--grpc-port", "0"}), "");
}

TEST(WorkerPortsTest, OptionsOfTheAgentAreNotGivenTwice) {
  EXPECT_THAT(WhyNot({"--routes", "x"}), HasSubstr("--routes is the agent's to give"));
  EXPECT_THAT(WhyNot({"--address=0.0.0.0"}), HasSubstr("--address is the agent's to give"));
  EXPECT_EQ(WhyNot({"--policy", "--routes-of-mine"}), "");
}

TEST(WorkerPortsTest, AnAddressForOtherNodesMayHaveAPort) {
  const auto parts = [](const std::string& text) {
    const auto parsed = ParsePeerAddress(text);
    return parsed ? parsed->host + " " + std::to_string(parsed->port) : parsed.error().message;
  };
  EXPECT_EQ(parts("10.0.0.6"), "10.0.0.6 0");
  EXPECT_EQ(parts("10.0.0.6:8200"), "10.0.0.6 8200");
  EXPECT_EQ(parts("node.example:0"), "node.example 0");
  EXPECT_EQ(parts("fe80::1"), "fe80::1 0");
  EXPECT_EQ(parts("[fe80::1]"), "[fe80::1] 0");
  EXPECT_EQ(parts("[fe80::1]:8200"), "[fe80::1] 8200");
  for (const char* wrong : {"", ":8200", "node:", "node:82000", "node:x", "[fe80::1:8200"}) {
    EXPECT_THAT(parts(wrong), HasSubstr("is not HOST or HOST:PORT")) << wrong;
  }
}

TEST(WorkerPortsTest, AWorkerKeepsThePortsThatNobodyNames) {
  const KeptWorker last{{12, 34}, 1, 2, 3, 4, "/models"};
  EXPECT_EQ(PortsToStartWith({}, {}), WorkerPorts{}) << "any free ones";
  EXPECT_EQ(PortsToStartWith({}, last), (WorkerPorts{1, 2, 3, 4}));
  EXPECT_EQ(PortsToStartWith({.http = 8000, .peer = 8200}, last), (WorkerPorts{8000, 2, 3, 8200}));
  EXPECT_TRUE(HasPorts(last, {}));
  EXPECT_TRUE(HasPorts(last, {.grpc = 2}));
  EXPECT_FALSE(HasPorts(last, {.grpc = 8001})) << "it is to be started again";
}

}  // namespace
}  // namespace tactus
