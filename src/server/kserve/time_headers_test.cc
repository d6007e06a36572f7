// A header that is misread gives a call a deadline that nobody asked for.
#include "server/kserve/time_headers.h"

#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

Expected<TimeLimit> Limit(std::string_view name, std::string_view value) {
  TimeLimit limit;
  if (Status read = ReadTimeHeader(name, value, limit); !read) {
    return std::unexpected(read.error());
  }
  return limit;
}

TEST(ReadTimeHeader, TakesEachFieldsUnit) {
  const struct {
    std::string_view name, value;
    Duration limit;
  } rows[] = {
      {"x-request-timeout-ms", "250", Millis(250)},
      {"x-envoy-expected-rq-timeout-ms", "15000", Seconds(15)},
      {"x-llm-d-slo-ttft-ms", "12.5", Micros(12'500)},
      {"x-slo-ttft-ms", "3", Millis(3)},
      {"connect-timeout-ms", "70", Millis(70)},
      {"grpc-timeout", "2H", Seconds(7200)},
      {"grpc-timeout", "2M", Seconds(120)},
      {"grpc-timeout", "2S", Seconds(2)},
      {"grpc-timeout", "2m", Millis(2)},
      {"grpc-timeout", "2u", Micros(2)},
      {"grpc-timeout", "2n", Nanos(2)},
      {"x-request-timeout-ms", "0.0000001", Nanos(1)},  // some time is left, however little
  };
  for (const auto& row : rows) {
    const auto limit = Limit(row.name, row.value);
    ASSERT_TRUE(limit.has_value()) << row.name << ": " << limit.error().message;
    EXPECT_EQ(limit->shortest(), row.limit) << row.name << ": " << row.value;
  }
}

TEST(ReadTimeHeader, WhatIsSpentIsExpiredAndNotNone) {
  for (const std::string_view name : kTimeHeaders) {
    const std::string value = name == "grpc-timeout" ? "-5m" : "-5";
    const auto limit = Limit(name, value);
    ASSERT_TRUE(limit.has_value()) << name;
    EXPECT_EQ(limit->shortest(), Duration{}) << name;
  }
  EXPECT_EQ(Limit("grpc-timeout", "0n")->shortest(), Duration{});
  EXPECT_EQ(Limit("connect-timeout-ms", "0")->shortest(), Duration{});
  EXPECT_EQ(Limit("x-request-timeout-ms", "0")->shortest(), std::nullopt);
  EXPECT_EQ(Limit("x-slo-ttft-ms", "0.0")->shortest(), std::nullopt);
}

TEST(ReadTimeHeader, HugeValuesAreNoLimit) {
  const std::string digits(400, '9');
  for (const std::string_view value : {"99999999999999999999", digits.c_str(), "31622400001"}) {
    EXPECT_EQ(Limit("connect-timeout-ms", value)->shortest(), std::nullopt) << value;
  }
  EXPECT_EQ(Limit("grpc-timeout", "99999999H")->shortest(), std::nullopt);
}

TEST(ReadTimeHeader, WhatIsNoTimeIsRefusedByName) {
  for (const std::string_view value :
       {"", "soon", "5ms", "1e3", "0x10", "inf", "nan", " 5", "5 "}) {
    for (const std::string_view name : kTimeHeaders) {
      const auto limit = Limit(name, value);
      ASSERT_FALSE(limit.has_value()) << name << ": '" << value << "'";
      EXPECT_TRUE(limit.error().message.starts_with(name)) << limit.error().message;
    }
  }
  for (const std::string_view value : {"5", "5s", "m", "5ms", "infS"}) {
    EXPECT_FALSE(Limit("grpc-timeout", value).has_value()) << value;
  }
}

}  // namespace
}  // namespace tactus
