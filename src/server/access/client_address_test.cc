#include "server/access/client_address.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(ClientAddress, NetworkStandsForAnIpv6Client) {
  EXPECT_EQ(ClientAt("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  EXPECT_EQ(ClientAt("2001:db8:1:2:ffff::1"), "2001:db8:1:2::");
  EXPECT_NE(ClientAt("2001:db8:1:3::1"), ClientAt("2001:db8:1:2::1"));
  EXPECT_EQ(ClientAt("fe80::1%eth0"), "fe80::");
  EXPECT_EQ(ClientAt("::1"), "::");
}

TEST(ClientAddress, Ipv4StandsForItself) {
  EXPECT_EQ(ClientAt("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(ClientAt("::ffff:10.0.0.1"), "10.0.0.1");
}

TEST(ClientAddress, OtherNamesStay) {
  EXPECT_EQ(ClientAt("/run/tactus.sock"), "/run/tactus.sock");
  EXPECT_EQ(ClientAt(""), "");
}

// Both front ends know a client by one name.
TEST(ClientAddress, ReadsPeersOfGrpc) {
  EXPECT_EQ(ClientAtGrpcPeer("ipv4:10.0.0.1:43210"), "10.0.0.1");
  EXPECT_EQ(ClientAtGrpcPeer("ipv6:%5B2001:db8:1:2::7%5D:43210"), ClientAt("2001:db8:1:2::9"));
  EXPECT_EQ(ClientAtGrpcPeer("ipv6:[2001:db8:1:2::7]:43210"), "2001:db8:1:2::");
  EXPECT_EQ(ClientAtGrpcPeer("ipv6:%5Bfe80::1%25eth0%5D:80"), "fe80::");
  EXPECT_EQ(ClientAtGrpcPeer("ipv6:%5B::ffff:10.0.0.1%5D:80"), "10.0.0.1");
  EXPECT_EQ(ClientAtGrpcPeer("unix:/run/tactus.sock"), "unix:/run/tactus.sock");
}

}  // namespace
}  // namespace tactus
