// Without these a wrong file would stop a server that runs, or let in who should stay out.
#include "server/access/access.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/rsa.h>
#include <sys/stat.h>

#include "base/temporary_folder_test.h"
#include "server/access/pki_for_test.h"

namespace tactus {
namespace {

using Outcome = Admission::Outcome;

constexpr const char* kReader = "reader-0123456789abcdef";
constexpr const char* kRouter = "router-0123456789abcdef";

std::string Tokens() {
  return std::string("# bearers\n\nreader read ") + kReader + "\nrouter\tinfer,read\t" + kRouter +
         "\r\n";
}

TEST(TokenList, EachTokenIsItsBearers) {
  const auto list = TokenList::Parse(Tokens(), "t");
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_NE(list->Find(kReader), nullptr);
  EXPECT_EQ(list->Find(kReader)->name, "reader");
  EXPECT_TRUE(list->Find(kReader)->Has(Scope::kRead));
  EXPECT_FALSE(list->Find(kReader)->Has(Scope::kInfer));
  EXPECT_TRUE(list->Find(kRouter)->Has(Scope::kInfer));
  EXPECT_FALSE(list->Find(kRouter)->Has(Scope::kAdmin));
  for (const std::string no :
       {"", "reader", "reader-0123456789abcde", "reader-0123456789abcdef "}) {
    EXPECT_EQ(list->Find(no), nullptr) << no;
  }
}

TEST(TokenList, AnErrorNamesTheLineAndNeverTheToken) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "t: no tokens"},
      {"# only words\n", "t: no tokens"},
      {"a read\n", "t:1: a line is NAME"},
      {"\na read secret-0123456789 more\n", "t:2: a line is NAME"},
      {"a write secret-0123456789\n", "t:1: each scope must be infer, read or admin"},
      {"a read, secret-0123456789\n", "t:1: each scope must be infer, read or admin"},
      {"a read secret\n", "t:1: a token has 16"},
      {"a read secret-0123456789\nb infer secret-0123456789\n", "t:2: the name or the token"},
      {"a read secret-0123456789\na infer secret-9876543210\n", "t:2: the name or the token"},
  };
  for (const auto& [text, error] : table) {
    const auto list = TokenList::Parse(text, "t");
    ASSERT_FALSE(list.has_value()) << text;
    EXPECT_TRUE(list.error().message.starts_with(error)) << list.error().message;
    EXPECT_EQ(list.error().message.find("secret"), std::string::npos) << list.error().message;
  }
}

class AccessTest : public testing::Test {
 protected:
  std::shared_ptr<Access> Open() {
    auto access = Access::Open(
        {.tls = {folder_ / "a.pem", folder_ / "a.key", {}}, .tokens = folder_ / "tokens"},
        [this](const std::string& line) { warnings_.push_back(line); });
    EXPECT_TRUE(access.has_value()) << access.error().message;
    return access.value_or(nullptr);
  }
  void SetUp() override {
    MakeCertificate(folder_, "a");
    WriteText(folder_ / "tokens", Tokens());
  }

  const TemporaryFolder made_;
  const std::filesystem::path folder_ = made_.path();
  std::vector<std::string> warnings_;
};

TEST_F(AccessTest, ATokenGrantsItsScopesAndNothingElse) {
  const auto access = Open();
  const std::string reader = std::string("Bearer ") + kReader;
  EXPECT_EQ(access->Admit(Scope::kOpen, "").outcome, Outcome::kAdmitted);
  EXPECT_EQ(access->Admit(Scope::kRead, "").outcome, Outcome::kNoToken);
  EXPECT_EQ(access->Admit(Scope::kRead, kReader).outcome, Outcome::kNoToken);
  EXPECT_EQ(access->Admit(Scope::kRead, "Basic " + reader).outcome, Outcome::kNoToken);
  EXPECT_EQ(access->Admit(Scope::kRead, "Bearer nobody").outcome, Outcome::kUnknownToken);
  EXPECT_EQ(access->Admit(Scope::kRead, reader).outcome, Outcome::kAdmitted);
  EXPECT_EQ(access->Admit(Scope::kRead, reader).client, "reader");
  EXPECT_EQ(access->Admit(Scope::kRead, std::string("bearer  ") + kReader).client, "reader");
  const Admission lacks = access->Admit(Scope::kAdmin, reader);
  EXPECT_EQ(lacks.outcome, Outcome::kLacksScope);
  EXPECT_EQ(lacks.http(), 403);
  EXPECT_EQ(lacks.grpc(), 7);
  EXPECT_NE(lacks.text.find("admin"), std::string::npos);
}

TEST_F(AccessTest, ChangedTokensHoldAndDamagedOnesDoNot) {
  const auto access = Open();
  const std::string later = "Bearer later-0123456789abcdef";
  EXPECT_FALSE(access->Admit(Scope::kRead, later).admitted());
  WriteText(folder_ / "tokens", "later read later-0123456789abcdef\n");
  access->Refresh();
  EXPECT_TRUE(access->Admit(Scope::kRead, later).admitted());
  EXPECT_FALSE(access->Admit(Scope::kRead, std::string("Bearer ") + kReader).admitted());
  WriteText(folder_ / "tokens", "later read\n");
  access->Refresh();
  EXPECT_TRUE(access->Admit(Scope::kRead, later).admitted());
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_TRUE(warnings_[1].starts_with("tokens: the old ones stay")) << warnings_[1];
  access->Refresh();
  EXPECT_EQ(warnings_.size(), 2u) << "one warning for one change";
}

TEST_F(AccessTest, ACertificateWithoutItsKeyIsNotTaken) {
  const auto access = Open();
  const auto first = access->tls();
  MakeCertificate(folder_, "b");
  std::filesystem::rename(folder_ / "b.pem", folder_ / "a.pem");
  access->Refresh();  // between the two files of one renewal
  EXPECT_EQ(access->tls(), first);
  std::filesystem::rename(folder_ / "b.key", folder_ / "a.key");
  access->Refresh();
  EXPECT_NE(access->tls(), first);
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_NE(warnings_[0].find("is not the key"), std::string::npos) << warnings_[0];
}

// Without this such a renewal was logged as taken, and the next start failed.
TEST_F(AccessTest, ARenewalThatOpenSslRefusesIsNotTaken) {
  const auto access = Open();
  const auto first = access->tls();
  constexpr std::size_t kTooShort = 1024;
  // OpenSSL serves with the second, and no client offers its curve.
  for (const auto& [key, why] : {std::pair(EVP_RSA_gen(kTooShort), "key too small"),
                                 std::pair(EVP_EC_gen("secp256k1"), "no shared cipher")}) {
    warnings_.clear();
    MakeCertificate(folder_, "a", false, key);
    access->Refresh();
    EXPECT_EQ(access->tls(), first);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("the old certificate stays in use"), std::string::npos);
    EXPECT_NE(warnings_[0].find(why), std::string::npos) << warnings_[0];
  }
}

// Without this a pipe in place of a file stopped the thread that looks for changes, for ever.
TEST_F(AccessTest, APipeInPlaceOfAFileIsWarnedOfAndTheOldOnesStay) {
  const auto access = Open();
  for (const char* name : {"tokens", "a.pem", "a.key"}) {
    const auto first = access->tls();
    std::filesystem::rename(folder_ / name, folder_ / "right");
    ASSERT_EQ(mkfifo((folder_ / name).c_str(), 0600), 0);
    warnings_.clear();
    access->Refresh();
    ASSERT_EQ(warnings_.size(), 1u) << name;
    EXPECT_NE(warnings_[0].find("a pipe"), std::string::npos) << warnings_[0];
    EXPECT_TRUE(access->Admit(Scope::kRead, std::string("Bearer ") + kReader).admitted());
    EXPECT_EQ(access->tls(), first);
    std::filesystem::remove(folder_ / name);
    std::filesystem::rename(folder_ / "right", folder_ / name);
    access->Refresh();
    EXPECT_EQ(warnings_.size(), 2u) << "it is read again";
  }
}

TEST_F(AccessTest, WhatIsNoUseIsRefusedAtTheStart) {
  const auto error = [](AccessOptions options) {
    const auto access = Access::Open(std::move(options), {});
    return access ? std::string("opened") : access.error().message;
  };
  const auto pem = folder_ / "a.pem";
  const auto key = folder_ / "a.key";
  EXPECT_NE(error({.tls = {pem, {}, {}}, .tokens = {}}).find("give both"), std::string::npos);
  EXPECT_NE(error({.tls = {{}, {}, pem}, .tokens = {}}).find("needs TLS"), std::string::npos);
  EXPECT_NE(error({.tls = {key, key, {}}, .tokens = {}}).find("is it the key?"), std::string::npos);
  EXPECT_NE(error({.tls = {pem, pem, {}}, .tokens = {}}).find("`openssl pkey"), std::string::npos);
  EXPECT_NE(error({.tls = {pem, key, key}, .tokens = {}}).find("a.key: no cert"),
            std::string::npos);
  EXPECT_NE(error({.tls = {}, .tokens = folder_}).find("is a directory, not a file"),
            std::string::npos);
  EXPECT_NE(error({.tls = {}, .tokens = folder_ / "none"}).find("cannot be read (No such file"),
            std::string::npos);
  MakeCertificate(folder_, "old", true);
  EXPECT_NE(error({.tls = {folder_ / "old.pem", folder_ / "old.key", {}}, .tokens = {}})
                .find("has expired"),
            std::string::npos);
  EXPECT_EQ(error({.tls = {folder_ / "old.pem", folder_ / "old.key", {}, true}, .tokens = {}}),
            "opened");
}

TEST_F(AccessTest, BeyondThisMachineItTakesBothOrAWord) {
  const auto both = Open();
  const auto none = Access::Open({}, {});
  ASSERT_TRUE(none.has_value());
  for (const char* const here : {"127.0.0.1", "127.8.8.8", "::1"}) {
    EXPECT_TRUE(CheckListening(here, **none, false).has_value()) << here;
  }
  for (const char* const beyond : {"0.0.0.0", "::", "10.0.0.1", "::ffff:127.0.0.1"}) {
    EXPECT_FALSE(CheckListening(beyond, **none, false).has_value()) << beyond;
    EXPECT_TRUE(CheckListening(beyond, **none, true).has_value()) << beyond;
    EXPECT_TRUE(CheckListening(beyond, *both, false).has_value()) << beyond;
  }
  const auto tokens = Access::Open({.tls = {}, .tokens = folder_ / "tokens"}, {});
  ASSERT_TRUE(tokens.has_value());
  const Status refused = CheckListening("0.0.0.0", **tokens, false);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("give --tls-cert and --tls-key, or say --insecure"),
            std::string::npos)
      << refused.error().message;
}

TEST_F(AccessTest, ANameIsNoAddressToListenOn) {
  const auto both = Open();
  for (const bool insecure : {false, true}) {
    const Status refused = CheckListening("localhost", *both, insecure);
    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(refused.error().message.starts_with("--address localhost: is no IP address; "))
        << refused.error().message;
  }
}

}  // namespace
}  // namespace tactus
