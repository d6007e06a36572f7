// Without these a token could admit two nodes, a certificate could be had without one, or a node
// would be shut out when its certificate ends.
#include "cluster/control/enrolment.h"

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"
#include "cluster/control/controller.h"
#include "cluster/control/join.h"
#include "cluster/control/renewal.h"
#include "cluster/tls/authority.h"
#include "fleet/two_nodes_test.h"

namespace tactus {
namespace {

using std::chrono::days;
using std::chrono::hours;
using ::testing::HasSubstr;

// Remembers tokens as a store does, which may be away.
struct UsedOnce {
  Status operator()(const Token& token, const std::string& key) {
    if (away) return Fail(ErrorCode::kUnavailable, "the store is away");
    const auto [used, first] = keys.try_emplace(token.sum, key);
    if (first || used->second == key) return {};
    return Fail(ErrorCode::kAlreadyExists, "used");
  }
  std::map<std::string, std::string> keys;
  bool away = false;
};

class EnrolmentTest : public ::testing::Test {
 protected:
  EnrolmentTest() {
    EXPECT_TRUE(MakeAuthority(authority_, {"localhost"}));
    enrolment_ = std::make_unique<Enrolment>(
        EnrolmentOptions{.authority = authority_,
                         .nodes = {"server0"},
                         .use = [this](const Token& token,
                                       const std::string& key) { return used_(token, key); }},
        [](const std::string&) {});
  }
  std::string NewToken() const { return *MakeToken(authority_, "server0", hours(1)); }
  Expected<Joined> Ask(JoinCall call) {
    std::promise<Expected<Joined>> answer;
    enrolment_->Ask(std::move(call),
                    [&](Expected<Joined> said) { answer.set_value(std::move(said)); });
    return answer.get_future().get();
  }

  TemporaryFolder folder_;
  const std::filesystem::path authority_ = folder_ / "authority";
  UsedOnce used_;
  std::unique_ptr<Enrolment> enrolment_;
};

TEST_F(EnrolmentTest, ATokenAdmitsOneKeyHoweverOftenItAsks) {
  const std::string token = NewToken();
  const KeyRequest mine = MakeKeyRequest();
  const auto joined = Ask({token, mine.request, ""});
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(NodeOfCertificate(joined->certificate), "server0");
  // The answer was lost with a controller: the next one gives it again.
  EXPECT_TRUE(Ask({token, mine.request, ""}));
  const auto other = Ask({token, MakeKeyRequest().request, ""});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(other.error().message, HasSubstr("was used before"));
  EXPECT_FALSE(Ask({"no token", mine.request, ""}));
  EXPECT_FALSE(Ask({NewToken(), "no request", ""}));
  EXPECT_EQ(used_.keys.size(), 1u);
}

TEST_F(EnrolmentTest, WhileNobodyCanTellWhetherATokenWasUsedItIsKept) {
  used_.away = true;
  const std::string token = NewToken();
  const KeyRequest mine = MakeKeyRequest();
  const auto refused = Ask({token, mine.request, ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  used_.away = false;
  EXPECT_TRUE(Ask({token, mine.request, ""}));
}

TEST_F(EnrolmentTest, ACertificateIsRenewedForItsOwnNodeWhileTheFleetHasIt) {
  const KeyRequest mine = MakeKeyRequest();
  EXPECT_EQ(NodeOfCertificate(Ask({"", mine.request, "server0"})->certificate), "server0");
  EXPECT_FALSE(Ask({"", mine.request, ""})) << "neither token nor certificate";
  const auto stranger = Ask({"", mine.request, "edge9"});
  ASSERT_FALSE(stranger);
  EXPECT_THAT(stranger.error().message, HasSubstr("no device 'edge9'"));
  EXPECT_FALSE(Ask({"", mine.request, "controller"}));
}

TEST(Renewal, IsDueInTheLastThird) {
  const std::chrono::sys_seconds from{};
  const Validity month{from, from + days(30)};
  EXPECT_EQ(RenewalOf(month, from + days(19)), Renewal::kNotDue);
  EXPECT_EQ(RenewalOf(month, from + days(21)), Renewal::kDue);
  EXPECT_EQ(RenewalOf(month, from + days(30)), Renewal::kExpired);
  EXPECT_EQ(RenewalOf(month, from - hours(1)), Renewal::kNotDue);  // a clock that is behind
}

// Over connections: a controller with an authority, and a node that has nothing but authority.pem.
class JoinTest : public EnrolmentTest {
 protected:
  void SetUp() override {
    ControllerOptions options{.listen = "127.0.0.1:0", .state = folder_ / "state"};
    options.tls = *PeerTls::Open(authority_);
    options.authority = authority_;
    options.use_token = [this](const Token& token, const std::string& key) {
      const std::scoped_lock lock(mutex_);
      return used_(token, key);
    };
    auto started = Controller::Start(std::move(options), TwoNodes::Fleet(), TwoNodes::OnTheFirst,
                                     [](const std::string&) {});
    ASSERT_TRUE(started) << started.error().message;
    controller_ = *std::move(started);
    std::filesystem::create_directories(node_);
    std::filesystem::copy(authority_ / "authority.pem", node_ / "authority.pem");
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(controller_->port()); }
  static bool Once(const std::string&) { return false; }

  std::mutex mutex_;
  const std::filesystem::path node_ = folder_ / "node";
  std::unique_ptr<Controller> controller_;
};

TEST_F(JoinTest, ANodeComesToItsCertificateAndToTheNextOneForTheSameKey) {
  const std::string nobody = "127.0.0.1:1";
  ASSERT_TRUE(JoinCluster({nobody, address()}, node_, NewToken(), Once));
  EXPECT_EQ(PeerTls::Open(node_)->node(), "server0");
  EXPECT_TRUE(DescribeCluster(address(), *PeerTls::Open(node_)));
  const std::string key = *ReadWhole(node_ / "node.key", "key");
  const std::string first = *ReadWhole(node_ / "node.pem", "certificate");
  const Status renewed = RenewCertificate({nobody, address()}, node_);
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_EQ(*ReadWhole(node_ / "node.key", "key"), key);
  EXPECT_NE(*ReadWhole(node_ / "node.pem", "certificate"), first);
  EXPECT_TRUE(DescribeCluster(address(), *PeerTls::Open(node_)));
}

TEST_F(JoinTest, WhileTheStoreIsAwayItAsksAgainAndIsLetInThen) {
  used_.away = true;
  int asked = 0;
  ASSERT_TRUE(JoinCluster({address()}, node_, NewToken(), [&](const std::string& why) {
    EXPECT_THAT(why, HasSubstr("cannot be determined"));
    const std::scoped_lock lock(mutex_);
    used_.away = ++asked < 3;
    return true;
  }));
  EXPECT_EQ(asked, 3);
}

TEST_F(JoinTest, AStrangersCertificateAndAnotherClustersTokenChangeNothing) {
  ASSERT_TRUE(MakeAuthority(folder_ / "other", {"localhost"}));
  const auto foreign = MakeToken(folder_ / "other", "server0", hours(1));
  const Status joined = JoinCluster({address()}, node_, *foreign, Once);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(node_ / "node.pem"));
  ASSERT_TRUE(MakeNode(folder_ / "other", "server0", folder_ / "stranger"));
  EXPECT_FALSE(DescribeCluster(address(), *PeerTls::Open(folder_ / "stranger")));
  EXPECT_FALSE(RenewCertificate({address()}, folder_ / "stranger"));
  EXPECT_FALSE(DescribeCluster(address(), PeerTls()));
}

TEST_F(JoinTest, ANodeThatListensAsAControllerIsToldNothing) {
  ASSERT_TRUE(MakeNode(authority_, "server0", folder_ / "fake"));
  ControllerOptions options{.listen = "127.0.0.1:0", .state = folder_ / "fake-state"};
  options.tls = *PeerTls::Open(folder_ / "fake");
  options.authority = authority_;
  bool asked = false;
  options.use_token = [&](const Token&, const std::string&) -> Status {
    asked = true;
    return {};
  };
  const auto fake = Controller::Start(std::move(options), TwoNodes::Fleet(), TwoNodes::OnTheFirst,
                                      [](const std::string&) {});
  ASSERT_TRUE(fake) << fake.error().message;
  const std::string there = "127.0.0.1:" + std::to_string((*fake)->port());
  EXPECT_FALSE(JoinCluster({there}, node_, NewToken(), Once));
  EXPECT_FALSE(asked);
  EXPECT_FALSE(DescribeCluster(there, *PeerTls::Open(folder_ / "fake")));
}

}  // namespace
}  // namespace tactus
