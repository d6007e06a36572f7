// Without these agents would stay with a controller that does not lead, or obey one that may not.
#include "cluster/control/spare.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "cluster/control/attendance.h"
#include "cluster/control/controller.h"
#include "fleet/two_nodes_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

template <class Holds>
bool HoldsInTime(Holds holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A node that obeys term 41, says so to whoever it reaches, and counts what it is told.
class Caller {
 public:
  explicit Caller(std::vector<std::string> controllers)
      : attendance_(std::move(controllers), PeerTls{},
                    {.connected = [] {},
                     .order = [this](const ToNode&) { ++orders_; },
                     .lost =
                         [this](const std::string& why) {
                           const std::scoped_lock lock(mutex_);
                           why_ = why;
                         }}) {}
  void Say() {
    NodeReport report;
    report.term = 41;
    attendance_.Send({"edge0", {7, 1}, ++sequence_, NodeHello{report, {}}});
  }
  std::string why() const {
    const std::scoped_lock lock(mutex_);
    return why_;
  }
  int orders() const { return orders_; }

 private:
  mutable std::mutex mutex_;
  std::string why_;
  std::atomic<int> orders_{0};
  std::uint64_t sequence_ = 0;
  Attendance attendance_;  // last: it uses the others
};

TEST(SpareController, SaysWhoLeadsHearsTheTermAndTheAgentFindsTheLeader) {
  auto spare = SpareController::Start("127.0.0.1:0", {}, [] { return std::string("ctl0"); });
  ASSERT_TRUE(spare) << spare.error().message;
  const std::string at_spare = "127.0.0.1:" + std::to_string((*spare)->port());
  EXPECT_FALSE(SpareController::Start(at_spare, {}, [] { return std::string(); }));
  const auto view = DescribeCluster(at_spare, {});
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error().message, HasSubstr("not the leader; ctl0 leads"));

  Caller alone({at_spare});
  EXPECT_TRUE(HoldsInTime([&] {
    alone.Say();
    return alone.why() == "not the leader; ctl0 leads" && (*spare)->term_heard() == 41;
  })) << alone.why();

  Caller lost({"127.0.0.1:1"});
  EXPECT_TRUE(HoldsInTime([&] {
    return lost.why().ends_with("; is one up there, with the same --tls?");
  })) << lost.why();

  const TemporaryFolder folder;
  auto leader =
      Controller::Start({.listen = "127.0.0.1:0",
                         .state = folder / "state",
                         .leader = {.term = 50, .settle = Millis(1)}},
                        TwoNodes::Fleet(), TwoNodes::OnTheFirst, [](const std::string&) {});
  ASSERT_TRUE(leader);
  Caller both({at_spare, "127.0.0.1:" + std::to_string((*leader)->port())});
  EXPECT_TRUE(HoldsInTime([&] {
    both.Say();
    return both.orders() > 0;
  })) << both.why();
}

TEST(SpareController, LeadsAtThePortWhereItWaited) {
  const TemporaryFolder folder;
  auto spare = SpareController::Start("127.0.0.1:0", {}, [] { return std::string(); });
  ASSERT_TRUE(spare);
  const std::string address = "127.0.0.1:" + std::to_string((*spare)->port());
  EXPECT_THAT(DescribeCluster(address, {}).error().message, HasSubstr("nobody is known to lead"));
  spare->reset();
  auto leader =
      Controller::Start({.listen = address,
                         .state = folder / "state",
                         .leader = {.term = 9, .settle = Millis(1)},
                         .least = {.term = 3, .epoch = 30}},
                        TwoNodes::Fleet(), TwoNodes::OnTheFirst, [](const std::string&) {});
  ASSERT_TRUE(leader) << leader.error().message;
  Caller node({address});
  EXPECT_TRUE(HoldsInTime([&] {
    node.Say();
    return !(*leader)->superseded().empty();
  })) << "a node obeys term 41";
  EXPECT_THAT((*leader)->superseded(), HasSubstr("term 41"));
}

TEST(SpareController, OneThatMayNotLeadAnyMoreEnds) {
  const TemporaryFolder folder;
  std::atomic<bool> may{true};
  auto leader =
      Controller::Start({.listen = "127.0.0.1:0",
                         .state = folder / "state",
                         .leader = {.term = 50, .settle = Millis(1)},
                         .may_lead = [&] { return may.load(); }},
                        TwoNodes::Fleet(), TwoNodes::OnTheFirst, [](const std::string&) {});
  ASSERT_TRUE(leader);
  Caller node({"127.0.0.1:" + std::to_string((*leader)->port())});
  EXPECT_TRUE(HoldsInTime([&] {
    node.Say();
    return node.orders() > 0;
  }));
  EXPECT_EQ((*leader)->superseded(), "");
  may = false;
  EXPECT_TRUE(HoldsInTime([&] {
    node.Say();
    return !(*leader)->superseded().empty();
  }));
  EXPECT_EQ((*leader)->superseded(), "this controller is not the elected leader any more");
}

}  // namespace
}  // namespace tactus
