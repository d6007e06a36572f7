#include "cluster/controller/used_tokens.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using testing::HasSubstr;

Token TokenOf(const std::string& sum) {
  return {.node = "n",
          .expires = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) +
                     std::chrono::hours(1),
          .sum = sum};
}

// Otherwise a token that was overheard would let a second node in.
TEST(UsedTokensTest, AStoreLetsEachTokenInForOneKey) {
  const TemporaryFolder folder;
  const std::string store = "sqlite:" + (folder / "knowledge.db").string();
  const auto use = UsedTokens(store, "none", true);
  EXPECT_TRUE(use(TokenOf("a"), "key"));
  EXPECT_TRUE(use(TokenOf("a"), "key")) << "the same node asks again";
  const Status other = use(TokenOf("a"), "another key");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kAlreadyExists);
  EXPECT_TRUE(use(TokenOf("b"), "another key"));
}

// Otherwise each of several controllers could take one token.
TEST(UsedTokensTest, ControllersThatAreElectedNeedAStoreInCommon) {
  const TemporaryFolder folder;
  const std::string store = "sqlite:" + (folder / "knowledge.db").string();
  const std::string elect = "sqlite:" + (folder / "election.db").string();
  EXPECT_TRUE(UsedTokens(store, elect, false)(TokenOf("a"), "key"))
      << "all controllers of one machine";
  for (const auto& use :
       {UsedTokens(store, elect, true), UsedTokens(store, "etcd://127.0.0.1:1/c", false)}) {
    const Status used = use(TokenOf("b"), "key");
    ASSERT_FALSE(used);
    EXPECT_THAT(used.error().message, HasSubstr("no --store in common"));
  }
}

}  // namespace
}  // namespace tactus
