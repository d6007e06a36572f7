#include "policies/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;

TEST(PolicyRegistry, MakesEveryPolicyItLists) {
  ASSERT_GE(Policies().size(), 8u);
  for (const PolicyInfo& info : Policies()) {
    const auto policy = MakePolicy(info.name);
    ASSERT_TRUE(policy.has_value()) << info.name << ": " << policy.error().message;
    EXPECT_EQ((*policy)->name(), info.name);
    EXPECT_FALSE(info.summary.empty()) << info.name;
  }
}

TEST(PolicyRegistry, KeepsOptionsInTheName) {
  const auto policy = MakePolicy("edgeserving:batch=1,clip=20");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ((*policy)->name(), "edgeserving:batch=1,clip=20");
}

TEST(PolicyRegistry, TakesListsAndNames) {
  for (const char* text : {"timeout:preferred=4", "timeout:preferred=1/8/16,drop=never",
                           "symphony:when=eager,gather=window"}) {
    const auto policy = MakePolicy(text);
    EXPECT_TRUE(policy.has_value()) << text << ": " << policy.error().message;
  }
}

TEST(PolicyRegistry, SaysWhatThereIsWhenAskedForAnother) {
  const auto policy = MakePolicy("edge-serving");
  ASSERT_FALSE(policy.has_value());
  EXPECT_EQ(policy.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(policy.error().message, HasSubstr("'edge-serving'"));
  EXPECT_THAT(policy.error().message, HasSubstr("all-final"));
}

TEST(PolicyRegistry, RefusesOptionsThatMeanNothing) {
  const struct {
    const char* text;
    const char* complaint;
  } cases[] = {
      {"edgeserving:depth=3", "has no option 'depth'"},
      {"all-final:clip=10", "has no option 'clip'"},
      {"edgeserving:batch", "key=value is expected"},
      {"edgeserving:=1", "key=value is expected"},
      {"edgeserving:batch=0", "a number from 1"},
      {"edgeserving:batch=two", "a number from 1"},
      {"edgeserving:batch=1.5", "not whole"},
      {"edgeserving:batch=1x", "a number from 1"},
      {"edgeserving:clip=0.5", "a number from 1"},
      {"edgeserving:clip=nan", "a number from 1"},
      {"edgeserving:batch=1,batch=2", "given twice"},
      {"symphony:when=later", "when=later: one of "},
      {"symphony:gather=", "gather=: one of prefix, window is expected"},
      {"timeout:preferred=8/4", "preferred=8/4: a rising list like 4/8/16"},
      {"timeout:preferred=4/4", "a rising list"},
      {"timeout:preferred=0/4", "a rising list"},
      {"timeout:preferred=4,8", "key=value is expected"},
      {"timeout:preferred=4//8", "a rising list"},
      {"timeout:preferred=4/8/", "a rising list"},
      {"timeout:preferred=4 8", "a rising list"},
      {"timeout:preferred=99999999999", "a rising list"},
      {"timeout:preferred=", "a rising list"},
  };
  for (const auto& c : cases) {
    const auto policy = MakePolicy(c.text);
    ASSERT_FALSE(policy.has_value()) << c.text;
    EXPECT_EQ(policy.error().code, ErrorCode::kInvalidArgument) << c.text;
    EXPECT_THAT(policy.error().message, HasSubstr(c.complaint)) << c.text;
  }
}

}  // namespace
}  // namespace tactus
