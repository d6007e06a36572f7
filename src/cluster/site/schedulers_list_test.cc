#include "cluster/site/schedulers_list.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(SchedulersListTest, OnlyTheSameListInTheSameOrderIsOneSite) {
  const std::vector<std::string> ours = {"a:1", "b:2"};
  EXPECT_EQ(WhyNotOneSite(ours, Joined(ours)), std::nullopt);
  EXPECT_EQ(WhyNotOneSite(ours, ""), std::nullopt);  // a caller that does not say
  for (const char* theirs : {"b:2,a:1", "a:1", "a:1,b:2,c:3"}) {
    const auto why = WhyNotOneSite(ours, theirs);
    ASSERT_TRUE(why) << theirs;
    EXPECT_NE(why->find(theirs), why->npos);
    EXPECT_NE(why->find("a:1,b:2"), why->npos);
    EXPECT_NE(why->find("--schedulers"), why->npos);
  }
}

TEST(SchedulersListTest, ALoneSchedulerGoesByAnyNameButIsNoneOfSeveral) {
  EXPECT_EQ(WhyNotOneSite({}, "its.name:8100"), std::nullopt);
  EXPECT_TRUE(WhyNotOneSite({}, "a:1,b:2"));
}

}  // namespace
}  // namespace tactus
