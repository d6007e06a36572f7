// Without these two controllers could lead at once and not know it, or a term be used twice.
#include "knowledge/coordination.h"

#include <csignal>
#include <filesystem>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "knowledge/process_test.h"
#include "knowledge/store.h"
#include "knowledge/store_case_test.h"

namespace tactus::knowledge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

enum class LeaderKind { kFile, kPostgres, kEtcd };

std::string LeaderKindName(const ::testing::TestParamInfo<LeaderKind>& info) {
  constexpr const char* kNames[] = {"File", "Postgres", "Etcd"};
  return kNames[static_cast<int>(info.param)];
}

class CoordinationTest : public ::testing::TestWithParam<LeaderKind> {
 protected:
  static constexpr Duration kLease = Seconds(2);

  static void TearDownTestSuite() {
    postgres_.reset();
    etcd_.reset();
  }
  void SetUp() override {
    static int cases = 0;
    const std::string name = "case" + std::to_string(cases++);
    std::string why;
    switch (GetParam()) {
      case LeaderKind::kFile:
        where_ = "sqlite:" + (folder_ / "knowledge.db").string();
        break;
      case LeaderKind::kPostgres:
        why = PostgresServer::WhyNot();
        if (why.empty() && !postgres_) postgres_ = std::make_unique<PostgresServer>();
        if (why.empty()) where_ = postgres_->MakeDatabase(name);
        break;
      case LeaderKind::kEtcd:
        why = EtcdServer::WhyNot();
        if (why.empty() && !etcd_) etcd_ = std::make_unique<EtcdServer>();
        if (why.empty()) where_ = "etcd://" + etcd_->endpoint().substr(7) + "/" + name;
        break;
    }
    if (!why.empty()) GTEST_SKIP() << why;
  }

  std::unique_ptr<Coordination> Controller(const std::string& name,
                                           Duration length = kLease) const {
    return Must(OpenCoordination(where_, {.name = name, .length = length}));
  }
  // Tries until the other's lease has ended, in real time.
  static std::uint64_t AcquireInTime(Coordination& controller, TimePoint now) {
    for (int turn = 0; turn < 600; ++turn) {
      if (const auto term = controller.Acquire(now, 0)) return *term;
      ::poll(nullptr, 0, 100);
    }
    return 0;
  }
  static void RestartServer() {
    if (GetParam() == LeaderKind::kPostgres) postgres_->Kill(), postgres_->Start();
    if (GetParam() == LeaderKind::kEtcd) etcd_->Kill(), etcd_->Start();
  }
  static PostgresServer& postgres() { return *postgres_; }
  static EtcdServer& etcd() { return *etcd_; }
  const std::string& where() const { return where_; }

 private:
  static inline std::unique_ptr<PostgresServer> postgres_;
  static inline std::unique_ptr<EtcdServer> etcd_;
  TemporaryFolder folder_;
  std::string where_;
};
INSTANTIATE_TEST_SUITE_P(Each, CoordinationTest,
                         ::testing::Values(LeaderKind::kFile, LeaderKind::kPostgres,
                                           LeaderKind::kEtcd),
                         LeaderKindName);

TEST_P(CoordinationTest, OneLeadsTheOtherIsToldWhoAndFollowsWithAHigherTerm) {
  auto first = Controller("ctl1"), second = Controller("ctl2");
  EXPECT_FALSE(first->Leads(kStart));
  const std::uint64_t term = Must(first->Acquire(kStart, 0));
  EXPECT_GT(term, 0u);
  EXPECT_EQ(first->term(), term);
  EXPECT_TRUE(first->Leads(kStart + Seconds(1)));

  const auto refused = second->Acquire(kStart, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("ctl1"));
  EXPECT_EQ(second->leader(), "ctl1");
  EXPECT_FALSE(second->Leads(kStart));

  first->Resign();
  EXPECT_FALSE(first->Leads(kStart + Seconds(1)));
  EXPECT_GT(Must(second->Acquire(kStart + Seconds(1), 0)), term);
  EXPECT_EQ(first->Renew(kStart + Seconds(1)).error().code, ErrorCode::kCancelled);
}

TEST_P(CoordinationTest, TermsRiseThroughRoundsRestartsAndWhatAStoreHasSeen) {
  std::uint64_t last = 0;
  for (int round = 0; round < 12; ++round) {
    auto controller = Controller("ctl" + std::to_string(round % 2));
    const std::uint64_t term = AcquireInTime(*controller, kStart);
    EXPECT_GT(term, last) << "round " << round;
    last = term;
    if (round % 4 == 1) RestartServer();
  }
  // A store that has seen more than the service remembers.
  {
    auto controller = Controller("ctl1");
    ASSERT_GT(AcquireInTime(*controller, kStart), last);
    EXPECT_GT(Must(controller->Acquire(kStart, last + 1'000)), last + 1'000);
  }
  EXPECT_GT(AcquireInTime(*Controller("ctl2"), kStart), last + 1'001);
}

class LeaseTest : public CoordinationTest {};
INSTANTIATE_TEST_SUITE_P(Each, LeaseTest,
                         ::testing::Values(LeaderKind::kPostgres, LeaderKind::kEtcd),
                         LeaderKindName);

TEST_P(LeaseTest, ALeaseEndsForItsHolderUnlessItIsRenewed) {
  auto controller = Controller("ctl1");
  Must(controller->Acquire(kStart, 0));
  ASSERT_TRUE(controller->Renew(kStart + Seconds(1)).has_value());
  EXPECT_TRUE(controller->Leads(kStart + Millis(2'999)));
  EXPECT_FALSE(controller->Leads(kStart + Seconds(3)));
  // Its own clock says so, whatever the service would grant.
  const auto late = controller->Renew(kStart + Seconds(3));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(controller->Leads(kStart + Seconds(1)));
}

TEST_P(LeaseTest, ALeaderThatHangsLosesItsLeaseToAnotherAndIsTold) {
  auto hung = Controller("hung"), next = Controller("next");
  const std::uint64_t term = Must(hung->Acquire(kStart, 0));
  EXPECT_GT(AcquireInTime(*next, kStart), term);
  // Its clock stood still as long as it hung, so only the service can tell it.
  ASSERT_TRUE(hung->Leads(kStart + Millis(1)));
  const auto renewed = hung->Renew(kStart + Millis(1));
  ASSERT_FALSE(renewed.has_value());
  EXPECT_EQ(renewed.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(renewed.error().message, HasSubstr("acquire a new term"));
  EXPECT_FALSE(hung->Leads(kStart + Millis(1)));
  EXPECT_TRUE(next->Leads(kStart + Millis(1)));
}

TEST_P(CoordinationTest, AStoreRefusesTheLeaderThatTheOthersHaveReplaced) {
  const TemporaryFolder folder;
  const std::string place = "sqlite:" + (folder / "history.db").string();
  auto store = Must(OpenStore(place));
  auto first = Controller("ctl1"), second = Controller("ctl2");
  const Batch stale{.term = Must(first->Acquire(kStart, Must(store->HighestSeen()).term))};
  Must(store->Commit(stale));
  first->Resign();
  Must(store->Commit(Batch{.term = AcquireInTime(*second, kStart)}));
  EXPECT_EQ(store->Commit(stale).error().code, ErrorCode::kCancelled);
}

class PostgresLeader : public CoordinationTest {};
INSTANTIATE_TEST_SUITE_P(Postgres, PostgresLeader, ::testing::Values(LeaderKind::kPostgres),
                         LeaderKindName);

TEST_P(PostgresLeader, ALeaderWhoseServerDiedLeadsNoMore) {
  auto controller = Controller("ctl1", Seconds(60));
  const std::uint64_t term = Must(controller->Acquire(kStart, 0));
  postgres().Kill();
  const auto renewed = controller->Renew(kStart + Seconds(1));
  ASSERT_FALSE(renewed.has_value());
  EXPECT_EQ(renewed.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(controller->Leads(kStart + Seconds(1)));
  const auto away = controller->Acquire(kStart + Seconds(1), 0);
  ASSERT_FALSE(away.has_value());
  EXPECT_EQ(away.error().code, ErrorCode::kUnavailable);
  postgres().Start();
  EXPECT_GT(Must(controller->Acquire(kStart + Seconds(2), 0)), term);
}

class EtcdLeader : public CoordinationTest {};
INSTANTIATE_TEST_SUITE_P(Etcd, EtcdLeader, ::testing::Values(LeaderKind::kEtcd), LeaderKindName);

TEST_P(EtcdLeader, ALeaderGoesOnWithoutEtcdUntilItsLeaseEnds) {
  auto controller = Controller("ctl1", Seconds(60));
  const std::uint64_t term = Must(controller->Acquire(kStart, 0));
  etcd().Kill();
  const auto renewed = controller->Renew(kStart + Seconds(1));
  ASSERT_FALSE(renewed.has_value());
  EXPECT_EQ(renewed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(controller->Leads(kStart + Millis(59'999)));
  EXPECT_FALSE(controller->Leads(kStart + Seconds(60)));
  etcd().Start();
  ASSERT_TRUE(controller->Renew(kStart + Seconds(2)).has_value());
  EXPECT_TRUE(controller->Leads(kStart + Seconds(61)));
  EXPECT_EQ(controller->term(), term);
}

TEST(FileLeader, ALockGoesWithItsProcessHoweverThatEnds) {
  const TemporaryFolder folder;
  const std::string where = "sqlite:" + (folder / "knowledge.db").string();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto controller = OpenCoordination(where, {.name = "child"});
    const std::uint64_t term = (*controller)->Acquire(kStart, 41).value_or(0);
    (void)!::write(ready[1], &term, sizeof term);
    for (;;) ::pause();
  }
  std::uint64_t term = 0;
  ASSERT_EQ(::read(ready[0], &term, sizeof term), ssize_t(sizeof term));
  EXPECT_EQ(term, 42u);
  auto controller = Must(OpenCoordination(where, {.name = "parent"}));
  const auto refused = controller->Acquire(kStart, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("child"), HasSubstr(std::to_string(child))));
  EXPECT_EQ(Must(controller->Acquire(kStart, 0)), 43u);

  std::filesystem::remove(folder / "knowledge.db.lock");
  EXPECT_EQ(controller->Renew(kStart).error().code, ErrorCode::kCancelled);
}

TEST(LeaderAddress, WhatNamesNoServiceIsRefusedWithARemedy) {
  for (const char* where :
       {"", "sqlite:", "zookeeper://a:1/b", "etcd://", "etcd://host/name", "etcd://host:99999/name",
        "etcd://host:2379", "etcd://host:2379/", "etcd://a:1,,b:2/name"}) {
    const auto opened = OpenCoordination(where, {.name = "ctl1"});
    ASSERT_FALSE(opened.has_value()) << where;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << where;
    EXPECT_THAT(opened.error().message, HasSubstr("write ")) << where;
  }
  EXPECT_FALSE(OpenCoordination("sqlite:a", {.name = "b", .length = Seconds(1)}).has_value());
}

TEST(LeaderAddress, AnEtcdThatSaysNothingOrNonsenseIsAway) {
  // A socket that listens and never answers, and a port where nobody listens.
  const int silent = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::listen(silent, 1), 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string both = "etcd://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) +
                           ",127.0.0.1:" + std::to_string(FreePort()) + "/street";
  const auto acquired =
      Must(OpenCoordination(both, {.name = "ctl1", .length = Seconds(2)}))->Acquire(kStart, 0);
  ASSERT_FALSE(acquired.has_value());
  EXPECT_EQ(acquired.error().code, ErrorCode::kUnavailable);
  ::close(silent);
}

}  // namespace
}  // namespace tactus::knowledge
