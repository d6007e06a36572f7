#include "service/trace_parent.h"

#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpan = "00f067aa0ba902b7";

TEST(TraceParent, IsReadAsTheStandardWritesIt) {
  const auto parent = ReadTraceParent("00-" + kTrace + "-" + kSpan + "-01");
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace[0], 0x4b);
  EXPECT_EQ(parent->trace[15], 0x36);
  EXPECT_EQ(parent->span[1], 0xf0);
  EXPECT_EQ(parent->span[7], 0xb7);
  EXPECT_TRUE(parent->sampled);
  EXPECT_FALSE(ReadTraceParent("00-" + kTrace + "-" + kSpan + "-02")->sampled);
  EXPECT_TRUE(ReadTraceParent("cc-" + kTrace + "-" + kSpan + "-01-what-comes-later"));
}

TEST(TraceParent, WhatIsNoneCountsAsAbsent) {
  const std::string none(32, '0');
  for (const std::string& text :
       {std::string(), std::string("00"), "00-" + kTrace + "-" + kSpan, "00-" + kTrace + kSpan,
        "00-" + kTrace + "-" + kSpan + "-0", "00-" + kTrace + "-" + kSpan + "-01-more",
        "cc-" + kTrace + "-" + kSpan + "-01more", "ff-" + kTrace + "-" + kSpan + "-01",
        "0x-" + kTrace + "-" + kSpan + "-01", "00-" + none + "-" + kSpan + "-01",
        "00-" + kTrace + "-" + none.substr(16) + "-01",
        "00-4BF92F" + kTrace.substr(6) + "-" + kSpan + "-01", "00-" + kTrace + "-" + kSpan + "-0g",
        "00_" + kTrace + "-" + kSpan + "-01"}) {
    EXPECT_FALSE(ReadTraceParent(text)) << text;
  }
}

}  // namespace
}  // namespace tactus
