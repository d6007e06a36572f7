// A token that is cut off or told to strangers, or a file that is no certificate, must be said so
// before anything is sent.
#include "base/server_trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

class ServerTrustTest : public ::testing::Test {
 protected:
  std::string File(const std::string& text) {
    const auto path = folder_ / "file";
    EXPECT_TRUE(WriteWhole(text, path, "text"));
    return path.string();
  }
  const TemporaryFolder folder_;
};

TEST_F(ServerTrustTest, ATokenIsTheFirstLine) {
  for (const char* text : {"secret-1", "secret-1\n", "secret-1\r\nsecret-2\n"}) {
    const auto token = ReadToken(File(text), {"127.0.0.1", 1}, false);
    ASSERT_TRUE(token) << token.error().message;
    EXPECT_EQ(*token, "secret-1");
  }
  for (const char* text : {"\nsecret", "two words", "schl\xC3\xBCssel"}) {
    const auto token = ReadToken(File(text), {"127.0.0.1", 1}, false);
    ASSERT_FALSE(token) << text;
    EXPECT_THAT(token.error().message, HasSubstr("no token"));
  }
}

TEST_F(ServerTrustTest, ATokenLeavesTheMachineInsideTlsOnly) {
  const std::string file = File("secret");
  EXPECT_TRUE(ReadToken(file, {"example.org", 8001}, true));
  const auto refused = ReadToken(file, {"example.org", 8001}, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("would go to example.org:8001 without TLS"));
}

TEST_F(ServerTrustTest, AuthoritiesAreCertificates) {
  EXPECT_TRUE(ReadAuthorities(File("-----BEGIN CERTIFICATE-----\n")));
  EXPECT_FALSE(ReadAuthorities(File("-----BEGIN PRIVATE KEY-----\n")));
  EXPECT_FALSE(ReadAuthorities((folder_ / "nothing").string()));
}

}  // namespace
}  // namespace tactus
