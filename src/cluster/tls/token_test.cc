// Without these a token that nobody signed, or one of the past, could admit a node.
#include "cluster/tls/token.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "cluster/tls/authority.h"
#include "cluster/tls/peer_tls.h"

namespace tactus {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
using ::testing::Not;

std::chrono::sys_seconds Today() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

class TokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeAuthority(folder_ / "ours", {"localhost"}));
    ASSERT_TRUE(MakeAuthority(folder_ / "theirs", {"localhost"}));
    const auto made = MakeToken(folder_ / "ours", "gate.north-1", hours(1));
    ASSERT_TRUE(made) << made.error().message;
    token_ = *made;
  }
  TemporaryFolder folder_;
  std::string token_;
};

TEST_F(TokenTest, ItNamesItsNodeToWhoeverHasACopyOfTheAuthority) {
  std::filesystem::copy(folder_ / "ours", folder_ / "copy");
  const auto read = ReadToken(folder_ / "copy", token_, Today());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->node, "gate.north-1");
  EXPECT_EQ(NodeOfToken(token_), "gate.north-1");
  EXPECT_GT(read->expires, Today() + hours(1) - std::chrono::minutes(5));
  EXPECT_EQ(read->sum.size(), 64u);
  EXPECT_EQ(token_.find(read->sum), std::string::npos) << "who reads the sum could join";
  const auto other = MakeToken(folder_ / "ours", "gate.north-1", hours(1));
  EXPECT_NE(ReadToken(folder_ / "ours", *other, Today())->sum, read->sum);
}

TEST_F(TokenTest, AnotherAuthoritysIsNone) {
  const auto read = ReadToken(folder_ / "theirs", token_, Today());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("tactus cluster token"));
  EXPECT_THAT(read.error().message, Not(HasSubstr(token_)));
}

TEST_F(TokenTest, ItEndsByTheClockOfWhoeverIsAsked) {
  EXPECT_TRUE(ReadToken(folder_ / "ours", token_, Today() - hours(2)));
  const auto late = ReadToken(folder_ / "ours", token_, Today() + hours(2));
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("has expired"));
}

TEST_F(TokenTest, EveryCharacterIsSigned) {
  for (std::size_t i = 0; i < token_.size(); ++i) {
    std::string other = token_;
    other[i] = other[i] == '0' ? '1' : '0';
    EXPECT_FALSE(ReadToken(folder_ / "ours", other, Today())) << other;
    EXPECT_FALSE(ReadToken(folder_ / "ours", token_.substr(0, i), Today())) << i;
  }
  const std::string south = "south" + token_.substr(std::string("gate.north-1").size());
  EXPECT_EQ(NodeOfToken(south), "south");
  EXPECT_FALSE(ReadToken(folder_ / "ours", south, Today()));
}

TEST_F(TokenTest, GarbageIsNone) {
  for (const std::string& text :
       {std::string(), std::string("."), std::string("..."), std::string("a.b.c.d"),
        std::string("a.1.c."), std::string(".1..x"), std::string("a.99999999999999999999.c.d"),
        std::string(10'000, '.'), std::string("a\0.1.c.d", 8), token_ + "0", "0" + token_}) {
    EXPECT_FALSE(ReadToken(folder_ / "ours", text, Today())) << text;
  }
  EXPECT_EQ(NodeOfToken("deadbeef"), "");
}

TEST_F(TokenTest, NamesThatNoNodeMayHaveGetNone) {
  for (const char* const name : {"", "controller", "a/b", "a,DNS:b", "a b", "\n"}) {
    EXPECT_FALSE(MakeToken(folder_ / "ours", name, hours(1))) << name;
  }
  EXPECT_FALSE(MakeToken(folder_ / "none", "a", hours(1)));
}

TEST_F(TokenTest, ARequestIsSignedForTheNodeThatIsNamedAndWhateverItSaysItself) {
  const KeyRequest mine = MakeKeyRequest();
  const auto certificate = SignNode(folder_ / "ours", "north", mine.request);
  ASSERT_TRUE(certificate) << certificate.error().message;
  EXPECT_EQ(NodeOfCertificate(*certificate), "north");
  const auto again = MakeKeyRequest(mine.key);
  ASSERT_TRUE(again);
  EXPECT_EQ(*SumOfKey(again->request), *SumOfKey(mine.request)) << "the key is the same";
  EXPECT_NE(*SumOfKey(MakeKeyRequest().request), *SumOfKey(mine.request));
  EXPECT_FALSE(SignNode(folder_ / "ours", "controller", mine.request));
  EXPECT_FALSE(SignNode(folder_ / "ours", "north", "no request"));
  EXPECT_FALSE(SumOfKey(mine.key));
  EXPECT_FALSE(MakeKeyRequest(mine.request));
}

}  // namespace
}  // namespace tactus
