// Every address on a command line goes through here: one that is read wrongly listens where it was
// not told to, or sends what is secret elsewhere.
#include "base/host_port.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(HostPort, IsReadFromWhatPeopleWrite) {
  const struct {
    const char* text;
    HostPort place;
  } cases[] = {{"127.0.0.1:8000", {"127.0.0.1", 8000}},
               {"gateway:1", {"gateway", 1}},
               {"a-b.example.org:65535", {"a-b.example.org", 65535}},
               {"[::1]:80", {"::1", 80}},
               {"[::]:0", {"::", 0}},
               {"[fe80::1%eth0]:80", {"fe80::1%eth0", 80}}};
  for (const auto& each : cases) {
    const auto place = ParseHostPort(each.text);
    ASSERT_TRUE(place) << each.text;
    EXPECT_EQ(*place, each.place) << each.text;
    EXPECT_EQ(HostPortText(place->host, place->port), each.text);
  }
}

TEST(HostPort, IsNothingElse) {
  for (const char* text :
       {"",          ":",         "host",           "host:",        ":80",      "host:65536",
        "host:-1",   "host:+1",   "host:8o",        "host: 80",     "host:80 ", "a b:80",
        "::1:80",    "::1",       "[::1]",          "[::1:80",      "::1]:80",  "[]:80",
        "[host]:80", "[::1]x:80", "http://host:80", "host/path:80", "a,b:80",   "user@host:80"}) {
    EXPECT_FALSE(ParseHostPort(text)) << text;
  }
}

TEST(HostPort, KnowsThisMachine) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.8.7", "::1"}) {
    EXPECT_TRUE(IsThisMachine(host)) << host;
  }
  for (const char* host : {"127.example.org", "127.0.0.1.example.org", "128.0.0.1", "0.0.0.0",
                           "::", "::2", "localhost.example.org", ""}) {
    EXPECT_FALSE(IsThisMachine(host)) << host;
  }
}

TEST(HostPort, PutsBracketsRoundIpv6) {
  EXPECT_EQ(Bracketed("::1"), "[::1]");
  EXPECT_EQ(Bracketed("[::1]"), "[::1]");
  EXPECT_EQ(Bracketed("host"), "host");
}

}  // namespace
}  // namespace tactus
