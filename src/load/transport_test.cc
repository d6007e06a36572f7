// Addresses as people write them, and what a model's configuration says to a client.
#include "load/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(ParseUrl, TakesHostAndPortWithOrWithoutAScheme) {
  for (const char* url : {"localhost:8000", "http://localhost:8000", "http://localhost:8000/v2",
                          "grpc://localhost:8000/"}) {
    const auto endpoint = ParseUrl(url);
    ASSERT_TRUE(endpoint) << url;
    EXPECT_EQ(endpoint->place, (HostPort{"localhost", 8000}));
    EXPECT_FALSE(endpoint->tls.value_or(false));
  }
  for (const char* url : {"https://localhost:8000/v2", "grpcs://localhost:8000"}) {
    EXPECT_EQ(ParseUrl(url)->place, (HostPort{"localhost", 8000}));
    EXPECT_EQ(ParseUrl(url)->tls, true);
  }
  const auto ipv6 = ParseUrl("http://[::1]:9");
  ASSERT_TRUE(ipv6);
  EXPECT_EQ(ipv6->place, (HostPort{"::1", 9}));
}

TEST(ParseUrl, RefusesTheRestByNamingIt) {
  for (const char* url : {"", "localhost", "localhost:", ":8000", "localhost:http", "h:0",
                          "h:65536", "[::1]", "[::1:9", "::1:9", "https://localhost"}) {
    const auto endpoint = ParseUrl(url);
    ASSERT_FALSE(endpoint) << url;
    EXPECT_THAT(endpoint.error().message, ::testing::HasSubstr(url));
  }
}

TEST(TargetOf, RefusesWhatDoesNotGoTogether) {
  const auto why = [](const TransportOptions& options) {
    const auto server = TargetOf(options);
    return server ? "" : server.error().message;
  };
  EXPECT_EQ(why({.url = "localhost:8000"}), "");
  EXPECT_THAT(why({.url = "https://localhost:8000"}), ::testing::HasSubstr("--ca FILE"));
  EXPECT_THAT(why({.url = "http://localhost:8000", .ca = "x"}),
              ::testing::HasSubstr("in the clear"));
  EXPECT_THAT(why({.url = "localhost:8000", .ca = "/no/such"}), ::testing::HasSubstr("/no/such"));
  EXPECT_THAT(why({.url = "example.org:8000", .token_file = "/no/such"}),
              ::testing::HasSubstr("without TLS"));
}

TEST(ApplyParameter, ReadsSloExitsAndAccuracy) {
  Model model;
  EXPECT_TRUE(ApplyParameter(model, "slo_ms", "12.5"));
  EXPECT_TRUE(ApplyParameter(model, "accuracy", "0.5, 0.75"));
  EXPECT_TRUE(ApplyParameter(model, "exit_names", "early, late"));
  EXPECT_TRUE(ApplyParameter(model, "priority", "2"));
  EXPECT_TRUE(ApplyParameter(model, "somebody_elses", "anything"));
  EXPECT_EQ(model.slo, Micros(12'500));
  EXPECT_EQ(model.priority, 2);
  ASSERT_EQ(model.exits.size(), 2U);
  EXPECT_EQ(model.exits[0].name, "early");
  EXPECT_EQ(model.exits[1].name, "late");
  EXPECT_DOUBLE_EQ(model.exits[1].accuracy, 0.75);
  EXPECT_FALSE(ApplyParameter(model, "slo_ms", "soon"));
  EXPECT_FALSE(ApplyParameter(model, "slo_ms", "-1"));
  EXPECT_FALSE(ApplyParameter(model, "accuracy", "0.5, high"));
}

// As the server names them: answers would name exits that the report does not know.
TEST(ApplyParameter, ExitsWithoutNamesAreNumbered) {
  Model model;
  EXPECT_TRUE(ApplyParameter(model, "accuracy", "0.5, 0.75"));
  EXPECT_TRUE(ApplyParameter(model, "exits", "a.onnx, b.onnx, c.onnx"));
  ASSERT_EQ(model.exits.size(), 3U);
  EXPECT_EQ(model.exits[0].name, "1");
  EXPECT_EQ(model.exits[2].name, "3");
  EXPECT_DOUBLE_EQ(model.exits[1].accuracy, 0.75);
}

TEST(MakeTransport, KnowsTwoProtocols) {
  EXPECT_TRUE(MakeTransport("http", {.url = "127.0.0.1:1"}));
  EXPECT_TRUE(MakeTransport("grpc", {.url = "127.0.0.1:1"}));
  const auto other = MakeTransport("carrier pigeon", {.url = "127.0.0.1:1"});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("http or grpc"));
}

}  // namespace
}  // namespace tactus
