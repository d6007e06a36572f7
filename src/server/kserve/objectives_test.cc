// Without it a router's objective would say nothing, or a number of its own would pass for ours.
#include "server/kserve/objectives.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::vector<std::string> entries) {
  const auto read = Objectives::Read(entries);
  return read ? std::string("accepted") : read.error().message;
}

TEST(Objectives, NamesMeanWhatTheOperatorSays) {
  const std::vector<std::string> entries{"premium=1", "batch=9", "a=b=2"};
  const auto read = Objectives::Read(entries);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->PriorityOf("premium"), 1u);
  EXPECT_EQ(read->PriorityOf("batch"), 9u);
  EXPECT_EQ(read->PriorityOf("a=b"), 2u);
  EXPECT_EQ(read->PriorityOf("Premium"), 0u) << "names are names, not header fields";
  EXPECT_EQ(read->PriorityOf("1"), 0u) << "a number is not passed through";
  EXPECT_EQ(read->PriorityOf(""), 0u);
}

TEST(Objectives, RefusesWhatIsNone) {
  for (const char* wrong : {"premium", "premium=", "=1", "premium=0", "premium=-1", "premium=1.5",
                            "premium=high", "premium=1000001", "premium=99999999999"}) {
    EXPECT_THAT(ErrorOf({wrong}), HasSubstr(wrong));
  }
  EXPECT_THAT(ErrorOf({"a=1", "a=2"}), HasSubstr("'a' is there twice"));
}

}  // namespace
}  // namespace tactus
