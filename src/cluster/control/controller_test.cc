// A controller and two nodes over real connections, in one process. Without it the threads of both
// drivers would be watched by no sanitizer.
#include "cluster/control/controller.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "cluster/control/attendance.h"
#include "cluster/control/loop.h"
#include "cluster/control/state_file.h"
#include "fleet/fleet_world_test.h"
#include "fleet/node_state.h"
#include "platform/wall_clock.h"

namespace tactus {
namespace {

// An agent without a process: every model loads at once.
class SimpleNode {
 public:
  SimpleNode(const std::string& name, const std::vector<std::string>& controllers, Incarnation who)
      : state_({.name = name, .beat_every = Millis(50)}, NodeKept{.who = who}) {
    state_.WorkerUp({}, "127.0.0.1:1", "127.0.0.1:2");
    attendance_ = std::make_unique<Attendance>(
        controllers, PeerTls{},
        AttendanceEvents{.connected = [this] { loop_.Post([this] { state_.Connected(); }); },
                         .order =
                             [this](ToNode order) {
                               loop_.Post([this, order] { state_.Receive(order, clock_.Now()); });
                             },
                         .lost = [](std::string) {}});
    thread_ = std::thread([this] { Run(); });
  }
  ~SimpleNode() {
    loop_.Close();
    thread_.join();
  }

  std::string denied() const {
    const std::scoped_lock lock(mutex_);
    return denied_;
  }

 private:
  void Run() {
    while (loop_.RunUntil(clock_.RealAt(std::min(state_.Next(), clock_.Now() + Millis(50))))) {
      NodeActions actions = state_.Take(clock_.Now());
      if (actions.keep) state_.WasKept();
      for (const std::string& model : actions.load) state_.Loaded(model);
      for (const std::string& model : actions.unload) state_.Unloaded(model);
      for (FromNode& message : actions.send) attendance_->Send(std::move(message));
      const std::scoped_lock lock(mutex_);
      denied_ = state_.denied();
    }
  }

  const WallClock clock_;
  Loop loop_;
  NodeState state_;
  std::unique_ptr<Attendance> attendance_;
  mutable std::mutex mutex_;
  std::string denied_;
  std::thread thread_;
};

Expected<FleetPlan> AllOnTheServer(const FleetInput& input) {
  FleetPlan plan;
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    plan.instances.push_back({FleetPipelineId{p}, FleetStageId{0}, DeviceId{0}});
    plan.instances.push_back({FleetPipelineId{p}, FleetStageId{1}, DeviceId{0}});
  }
  plan.routes = RoutesOf(plan.instances);
  return plan;
}

template <class Holds>
bool Eventually(Holds holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

TEST(Controller, RollsAPlanOutOverConnectionsAndLeadsByALaterTermWhenItStartsAgain) {
  const TemporaryFolder folder;
  ControllerOptions options{.listen = "127.0.0.1:0", .state = folder / "state"};
  const auto start = [&] {
    return Controller::Start(options, FleetWorld::MadeFleet(1, 1), AllOnTheServer,
                             [](const std::string&) {});
  };
  auto controller = start();
  ASSERT_TRUE(controller) << controller.error().message;
  EXPECT_EQ(start().error().code, ErrorCode::kAlreadyExists);
  options.listen = "127.0.0.1:" + std::to_string((*controller)->port());
  SimpleNode server("server0", {options.listen}, {1, 1});
  SimpleNode edge("edge0", {options.listen}, {2, 1});
  const auto serves = [&](std::uint64_t term) {
    return Eventually([&] {
      const auto view = DescribeCluster(options.listen, {});
      return view && view->term == term && view->serving.term == term && view->phase == "done" &&
             view->nodes.at(1).slice.instances.size() == 2 &&
             view->nodes.at(0).slice.routes.size() == 2;
    });
  };
  EXPECT_TRUE(serves(1));
  const SimpleNode second("edge0", {options.listen}, {3, 1});
  EXPECT_TRUE(Eventually([&] { return !second.denied().empty(); }));

  controller->reset();
  EXPECT_FALSE(DescribeCluster(options.listen, {}));
  controller = start();
  ASSERT_TRUE(controller) << controller.error().message;
  EXPECT_TRUE(serves(2));
  EXPECT_EQ(ReadLeader(folder / "state")->term, 2u);
}

TEST(Controller, OneThatLostItsStateLeadsByATermThatNoNodeKnows) {
  const TemporaryFolder folder;
  auto controller =
      Controller::Start({.listen = "127.0.0.1:0", .state = folder / "state"},
                        FleetWorld::MadeFleet(1, 1), AllOnTheServer, [](const std::string&) {});
  ASSERT_TRUE(controller);
  const std::string address = "127.0.0.1:" + std::to_string((*controller)->port());
  SimpleNode server("server0", {address}, {1, 1});
  EXPECT_TRUE(Eventually([&] {
    const auto view = DescribeCluster(address, {});
    return view && !view->serving.none();
  }));
  controller->reset();
  auto again =
      Controller::Start({.listen = address, .state = folder / "another"},
                        FleetWorld::MadeFleet(1, 1), AllOnTheServer, [](const std::string&) {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(Eventually([&] {
    const auto view = DescribeCluster(address, {});
    return view && view->serving.term == 2;
  }));
}

}  // namespace
}  // namespace tactus
