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

}  // namespace
}  // namespace tactus
