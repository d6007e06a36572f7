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

// One screen of 80 columns lists them all (`tactus policies`), what is taken unasked first.
TEST(PolicyRegistry, FitsAScreen) {
  EXPECT_EQ(Policies().front().name, "horizon");
  for (const PolicyInfo& info : Policies()) {
    EXPECT_LE(info.name.size(), 30u) << info.name;
    EXPECT_FALSE(info.brief.empty()) << info.name;
    EXPECT_LE(info.brief.size(), 50u) << info.name;
  }
}

TEST(PolicyRegistry, KeepsOptionsInTheName) {
  const auto policy = MakePolicy("edgeserving:batch=1,clip=20");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ((*policy)->name(), "edgeserving:batch=1,clip=20");
}

TEST(PolicyRegistry, TakesListsAndNames) {
  for (const char* text : {"timeout:preferred=4", "timeout:preferred=1/8/16,drop=never",
                           "symphony:published,when=eager"}) {
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
      {"edgeserving:batch", "batch=: a number from 1 to"},
      {"edgeserving:=1", "key=value is expected"},
      {"edgeserving:batch=0", "a number from 1"},
      {"edgeserving:batch=two", "a number from 1"},
      {"edgeserving:batch=1.5", "not whole"},
      {"edgeserving:batch=1x", "a number from 1"},
      {"edgeserving:clip=0.5", "a number from 1"},
      {"edgeserving:clip=nan", "a number from 1"},
      {"edgeserving:batch=1,batch=2", "given twice"},
      {"symphony:when=later", "when=later: one of "},
      {"symphony:gather=", "gather=: one of window, prefix is expected"},
      {"timeout:preferred=8/4", "preferred=8/4: a rising list like 4/8/16"},
      {"timeout:preferred=4/4", "a rising list"},
      {"timeout:preferred=0/4", "a rising list"},
      {"timeout:preferred=4,8", "no option '8'"},
      {"timeout:preferred=4//8", "a rising list"},
      {"timeout:preferred=4/8/", "a rising list"},
      {"timeout:preferred=4 8", "a rising list"},
      {"timeout:preferred=99999999999", "a rising list"},
      {"timeout:preferred=", "a rising list"},
      {"fifo:cost=-1", "a number from 0"},
      {"strait:starve=0", "starve=0: a number from 1 to 1000000"},
      {"strait-plain:starve=0.5", "starve=0.5: a number from 1"},
      {"fifo:costs=1", "it has batch=N: largest batch; cost=US"},
  };
  for (const auto& c : cases) {
    const auto policy = MakePolicy(c.text);
    ASSERT_FALSE(policy.has_value()) << c.text;
    EXPECT_EQ(policy.error().code, ErrorCode::kInvalidArgument) << c.text;
    EXPECT_THAT(policy.error().message, HasSubstr(c.complaint)) << c.text;
  }
}

// An option that is read nowhere makes two runs look compared that were the same.
TEST(PolicyRegistry, RefusesOptionsThatWouldChangeNothing) {
  const struct {
    const char* text;
    const char* complaint;
  } cases[] = {
      {"symphony:k=5", "option k=5 changes nothing without when=timeout"},
      {"symphony:when=eager,gather=prefix,share=0.2",
       "share=0.2 changes nothing without when=timeout"},
      {"symphony:when=timeout,k=5,share=0.2", "k=5 changes nothing beside share=0.2"},
      {"symphony:when=latest,gather=prefix,lead=0.1",
       "lead=0.1 changes nothing without when=frontrun"},
      {"strait:unlucky=no", "option unlucky is called tail now"},  // RENAMED
      {"symphony:published=yes", "published=yes: the word alone is expected"},
      {"symphony:gather=prefix,aim=0.8", "aim=0.8 changes nothing without gather=window"},
      {"symphony-plain:gather=prefix,rate=100", "rate=100 changes nothing without gather=window"},
      {"timeout:share=0.2,k=5", "k=5 changes nothing beside share=0.2"},
      {"strait:cap=no,least=50", "least=50 changes nothing without cap=yes"},
      {"strait:step=1,cap=no", "step=1 changes nothing without cap=yes"},
      {"strait:form=0,slack=2", "slack=2 changes nothing without form above 0"},
      {"strait:form=0,room=0", "room=0 changes nothing without form above 0"},
  };
  for (const auto& c : cases) {
    const auto policy = MakePolicy(c.text);
    ASSERT_FALSE(policy.has_value()) << c.text;
    EXPECT_THAT(policy.error().message, HasSubstr(c.complaint)) << c.text;
  }
}

TEST(PolicyRegistry, GivesEveryPolicyItsDecisionCost) {
  for (const PolicyInfo& info : Policies()) {
    const auto free = MakePolicy(info.name);
    EXPECT_FALSE((*free)->traits().decision_cost.launch) << info.name;
    const auto costly = MakePolicy(info.name + ":cost=12.5,look=0");
    ASSERT_TRUE(costly) << costly.error().message;
    EXPECT_EQ((*costly)->traits().decision_cost.launch, Nanos(12'500)) << info.name;
    EXPECT_EQ((*costly)->traits().decision_cost.candidate, Duration{}) << info.name;
  }
}

}  // namespace
}  // namespace tactus
